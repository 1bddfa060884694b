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

/// Documents that plans are made from, with the links to be written into them.
struct PlanDocuments {
  Profile profile;
  Workload workload;
  std::optional<Roles> roles;
  DocumentLink profile_link, workload_link;
  std::optional<DocumentLink> roles_link;
};

/// Of files or shipped names; an empty `roles` is none. Throws as read_profile().
[[nodiscard]] PlanDocuments read_plan_documents(const std::string& profile,
                                                const std::string& workload,
                                                const std::string& roles);

/// How deep machines are opened.
enum class PlacesAsked : std::uint8_t {
  machine, ///< a rank a machine
  numa,    ///< a rank a NUMA node
  gpu,     ///< a rank a GPU
  ranks,   ///< some ranks a machine, which share its NUMA nodes
};

/// What is asked of the planners; the strategy decides which of them answers.
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
  /// With PlacesAsked::ranks: of each machine that works, the last one of all that follow.
  std::vector<std::uint64_t> ranks_a_machine{};
  /// Of each working machine's places, how many are memory devices: ranks that only sum.
  std::optional<std::uint64_t> devices{};
  /// Any but all-reduce only for plans of places.
  Collective collective = Collective::all_reduce;
  std::optional<std::uint64_t> root; ///< rank that a broadcast is from and a reduce is to
  /// InsideOptions::gpu_direct, absent: no, and OpenMachine::gpu_direct of all machines, absent:
  /// yes.
  std::optional<bool> gpu_direct{};
  /// Inside one machine, whatever the strategy; of the common options those of PlanOptions count.
  std::optional<InsidePlanOptions> inside;
};

/// Plans as asked. Where neither roles nor the request say who works and serves: all machines of a
/// measured cluster, all of the first group of one that was written down, or a rank a processor of
/// one machine; and no servers. With the strategy "auto" and a second group of machines that could
/// serve, the candidates say what as many servers as workers (or all that there are) would give.
/// Throws Error{usage} for parts of the request that do not fit each other, and as the planners.
[[nodiscard]] Plan plan_as_asked(const PlanDocuments& documents, const PlanRequest& request);

} // namespace reckon
