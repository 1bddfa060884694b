// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "strategies/ways.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Plan::transport between machines of whose ports the profile says none.
inline constexpr std::string_view k_unspecified_transport = "unspecified";

/// What lies between a plan's ranks, and what their local ops cost there.
struct PlanNetwork {
  PlayNetwork network;
  std::vector<std::string> stations; ///< names, by station
  OpCost cost;
};

/// Whether the plan's ranks are places inside machines, or machines as places of one network.
[[nodiscard]] bool has_places(const Plan& plan);

/// Of a plan that has_places(). Throws Error{input} when the profile's machine lacks one.
[[nodiscard]] Places places_of(const Plan& plan, const Profile& profile);

/// The network that a plan's prediction is played on, from any profile of the same machines:
/// - ranks inside a machine: its links and memories (network_of() of strategies/ways.hpp);
/// - nodes of a torus of the profile's endpoint: its links (torus_between());
/// - machines whose pairs the profile knows: the ways between them (measured_pairs());
/// - ranks with ports: each port and the racks' uplinks (single_port_network()): "rank 3 out" and
///   "rank 3 in", of several ports "rank 3 eth0 out" and so on beside what they carry together;
/// - ranks that share one machine: one station, its memory. What they write passes it at the rate
///   for that many talkers, and summing takes turns where there are more lanes than processors.
/// Throws Error{input} when the profile lacks what is needed.
[[nodiscard]] PlanNetwork network_of(const Plan& plan, const Profile& profile);

} // namespace reckon
