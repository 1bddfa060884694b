// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "documents/workload.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/planner.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

struct InsidePlanOptions {
  std::string machine;  ///< a MachineGroup of the profile that is a topology object; empty: its
                        ///< first
  InsideOptions inside; ///< who works, and what else passes the links
  /// Several machines and how deep each is opened; empty: only `machine`, as in `inside`.
  std::vector<OpenMachine> machines{};
  std::uint64_t lanes = 1;
  Collective collective = Collective::all_reduce;
  std::uint64_t root = 0; ///< rank that a broadcast starts from and a reduce ends at
  /// The options of all plans: strategy ("auto", or a candidate's name), transport (empty: "cuda"
  /// where a worker is a GPU, else "host"), part size, window, cutting, passes, order and
  /// optimizer.
  PlanOptions plan{};
};

/// Plans between the places of these machines, at least one. A single opened machine is planned
/// inside, because nothing leaves it: its NUMA nodes that do not work may then sum even without
/// relays.
void open_machines(InsidePlanOptions& options, std::vector<OpenMachine> machines);

/// The documents that a plan is made from, with the links to write into it.
struct InsideInputs {
  const Profile& profile;
  const Workload& workload;
  DocumentLink profile_link, workload_link;
  std::optional<DocumentLink> roles_link{};
};

/// The best mix of trees on the machine's links (solve_forests()) as a plan that can run: one rank
/// for each endpoint in use, the gradient cut into parts, each part's tree and lane, and the
/// window. The prediction is the time of one iteration inside the machine, played link by link; the
/// traffic with other machines (options.inside.network) decides about the trees but is not part of
/// it. Throws as network_inside_machine() and solve_forest(), and Error{input} when no rate of the
/// sums' resources is known.
[[nodiscard]] Plan plan_inside(const InsideInputs& inputs, const InsidePlanOptions& options);

/// The first machine of the profile that is a topology object. Throws Error{input} if the profile
/// has no such object.
[[nodiscard]] std::string machine_with_topology(const Profile& profile);

} // namespace reckon
