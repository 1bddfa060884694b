// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "topology/topology.hpp"

#include <string>
#include <vector>

namespace reckon {

/// A network port by the name that the operating system or the user gives it: "eth0"; its id where
/// `topology` does not have it.
[[nodiscard]] std::string port_name(const Topology& topology, const std::string& port);

/// PHub, figure 2a: lane i of a machine uses network port i modulo their number (`ports`: ids of
/// their objects, or names where the topology lacks them), and its thread a processor of the port's
/// NUMA node. Lanes of a node take its cores in turn, first whole cores, then the other processors
/// of the same cores; no processor is shared until all are in use. A port whose node is unknown
/// leaves node and processor open. No ports, no places.
[[nodiscard]] std::vector<LanePlace>
lane_places(const Topology& topology, const std::vector<std::string>& ports, std::size_t lanes);

} // namespace reckon
