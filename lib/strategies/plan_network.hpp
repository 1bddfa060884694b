// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/own_machines.hpp"
#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "strategies/ways.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace reckon {

/// The network between a plan's ranks, and the cost of their local ops on it.
struct PlanNetwork {
  PlayNetwork network;
  std::vector<std::string> stations; ///< names, by station
  OpCost cost;
};

/// Whether the plan's ranks are places inside machines, or machines as places of one network.
[[nodiscard]] bool has_places(const Plan& plan);

/// The ranks that roles name, in the order of their groups, with their places. A group without
/// endpoints is whole machines, the next ones of their group; endpoints that the current machine
/// has already belong to the next one.
[[nodiscard]] std::vector<PlanRank> ranks_of(const Roles& roles);

/// The machines in which ranks are places, in the order in which they are named. `gpu_direct`:
/// OpenMachine::gpu_direct of all.
[[nodiscard]] std::vector<OpenMachine> machines_of(const std::vector<PlanRank>& ranks,
                                                   bool gpu_direct = true);

/// The network between ranks that are places; `transport` "" takes any. Throws Error{input} when
/// the profile's machine lacks one.
[[nodiscard]] Places places_of(const std::vector<PlanRank>& ranks, const Profile& profile,
                               const std::string& transport, bool gpu_direct = true);
/// For a plan that has_places().
[[nodiscard]] Places places_of(const Plan& plan, const Profile& profile);

/// The network that a plan's prediction is played on, from any profile of the same machines:
/// - places in one or several machines: their links and memories (between_places());
/// - nodes of a torus of the profile's endpoint: its links (torus_between());
/// - machines: measured pairs, ports and the racks' uplinks (network_between_ranks());
/// - ranks that share one machine: one station, its memory. What they write passes it at the rate
///   for that many talkers, and summing takes turns where there are more lanes than processors: all
///   lanes that sum do so all the time, so that one that sums more than others takes too long.
/// Throws Error{input} when the profile lacks what is needed.
[[nodiscard]] PlanNetwork network_of(const Plan& plan, const Profile& profile);

} // namespace reckon
