// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <string_view>

namespace reckon {

/// The NUMA node of an object; for an object directly below the machine, the machine's only node.
/// nullptr: unknown.
[[nodiscard]] const TopologyObject* numa_node_of(const Topology& topology, std::string_view id);

} // namespace reckon
