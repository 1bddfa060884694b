// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "documents/roles.hpp"
#include "documents/workload.hpp"
#include "strategies/forest/planner.hpp"
#include "strategies/planner.hpp"
#include "strategies/proxies/planner.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace reckon {

/// The documents that plans are made from, with the links to write into them.
struct PlanDocuments {
  Profile profile;
  Workload workload;
  std::optional<Roles> roles;
  DocumentLink profile_link, workload_link;
  std::optional<DocumentLink> roles_link;
};

/// From files or shipped names; an empty `roles` means no roles. Throws as read_profile().
[[nodiscard]] PlanDocuments read_plan_documents(const std::string& profile,
                                                const std::string& workload,
                                                const std::string& roles);

/// How deep machines are opened.
enum class PlacesAsked : std::uint8_t {
  machine, ///< a rank a machine
  numa,    ///< a rank a NUMA node
  gpu,     ///< a rank a GPU
  ranks,   ///< several ranks a machine, which share its NUMA nodes
};

/// A request to the planners; the strategy decides which planner answers.
struct PlanRequest {
  PlanOptions options;
  /// By how much ports of options.what_if may be faster or slower than it says, as a part of it.
  double port_spread = 0, server_port_spread = 0;
  ProxyOptions proxies;                                 ///< of strategies over memory devices
  std::string shape;                                    ///< of a torus, as parse_shape() has it
  std::optional<std::uint64_t> workers, servers, lanes; ///< where no roles say who works
  /// A rank for each place of this kind in every machine; absent: a rank a machine, or as roles
  /// say.
  std::optional<PlacesAsked> places;
  /// With PlacesAsked::ranks: for each machine that works, the last number for all that follow.
  std::vector<std::uint64_t> ranks_a_machine{};
  /// The number of memory devices, ranks that only sum, among each working machine's places.
  std::optional<std::uint64_t> devices{};
  /// Collectives other than all-reduce need plans of places.
  Collective collective = Collective::all_reduce;
  std::optional<std::uint64_t> root; ///< root of a broadcast or a reduce
  /// InsideOptions::gpu_direct, absent: no, and OpenMachine::gpu_direct of all machines, absent:
  /// yes.
  std::optional<bool> gpu_direct{};
  /// Workers' gradients lie on GPUs, and come to their machines' memory from there.
  bool gpu_gradients = false;
  /// Inside one machine, with any strategy; the common options in PlanOptions count.
  std::optional<InsidePlanOptions> inside;
};

/// Plans the request. Without roles and numbers of workers and servers: all machines of a measured
/// cluster, all of the first group of a written profile, or a rank a processor of one machine; and
/// no servers. With the strategy "auto" and a second group of machines that could serve, the
/// candidates show the effect of as many servers as workers (or all). Throws Error{usage} for parts
/// of the request that contradict each other, and as the planners.
[[nodiscard]] Plan plan_as_asked(const PlanDocuments& documents, const PlanRequest& request);

} // namespace reckon
