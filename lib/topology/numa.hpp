// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <string_view>

namespace reckon {

/// The NUMA node that an object hangs from, or is; of one that hangs from the machine itself, the
/// machine's only node. nullptr: not known.
[[nodiscard]] const TopologyObject* numa_node_of(const Topology& topology, std::string_view id);

} // namespace reckon
