// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "documents/workload.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/parts.hpp"
#include "strategies/planner.hpp"
#include "strategies/play.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

struct InsidePlanOptions {
  std::string machine;  ///< a MachineGroup of the profile that is a topology object; empty: its
                        ///< first
  InsideOptions inside; ///< who works, and what else passes the links
  /// Several machines and how deep each is opened; empty: only `machine`, as `inside` says.
  std::vector<OpenMachine> machines{};
  std::string transport; ///< empty: "cuda" where a worker is a GPU, else "host"
  std::uint64_t lanes = 1;
  std::optional<std::uint64_t> part_bytes, window_parts; ///< absent: by the played time
  Cutting cutting = Cutting::fused;
  PassSeconds passes{}; ///< of the model, played beside the traffic; 0: only the traffic counts
  Collective collective = Collective::all_reduce;
  std::uint64_t root = 0; ///< rank that a broadcast is from and a reduce is to
};

/// Documents that a plan is made from, with the links to be written into it.
struct InsideInputs {
  const Profile& profile;
  const Workload& workload;
  DocumentLink profile_link, workload_link;
  std::optional<DocumentLink> roles_link{};
};

/// Name of the quantity of a plan that counts links, memories and sums of unknown rate, which limit
/// nothing; absent where all are known.
inline constexpr std::string_view k_unlimited_resources = "unlimited_resources";

/// The best mix of trees on the machine's links (forest_inside) as a plan that can be run: one
/// rank for each endpoint in use, the gradient cut into parts, each part's tree, lane and window.
/// The prediction is what one iteration takes inside the machine, played link by link; the traffic
/// with other machines (options.inside.network) decides about the trees but is not part of it.
/// Throws as forest_inside, and Error{input} when no rate is known of anything that the sums
/// take.
[[nodiscard]] Plan plan_inside(const InsideInputs& inputs, const InsidePlanOptions& options);

/// The first machine of the profile that is a topology object. Throws Error{input} where none is.
[[nodiscard]] std::string machine_with_topology(const Profile& profile);

/// The links and memories of a model as stations of a play between these endpoints (indices of the
/// model's).
[[nodiscard]] PlayNetwork network_of(const Network& model, std::span<const std::size_t> endpoints);

/// What a rank's local ops cost there: adding one more stream to what is there keeps the resource
/// busy that needs longest for it, and nothing else takes time. `model` must outlive it.
[[nodiscard]] OpCost op_cost(const Network& model, std::vector<std::size_t> endpoints);

/// The rank of a plan that is this object of the topology: its endpoint, kind, PCI address and the
/// processors of the NUMA node that it is or hangs from. Throws Error{input} when there is none.
[[nodiscard]] PlanRank rank_at(const Topology& topology, const std::string& machine,
                               const std::string& endpoint);

} // namespace reckon
