// SPDX-License-Identifier: Apache-2.0
#include "topology/numa.hpp"

namespace reckon {

const TopologyObject* numa_node_of(const Topology& topology, std::string_view id) {
  const TopologyObject* top = nullptr;
  for (const TopologyObject* at = topology.find(id); at != nullptr;
       at = topology.find(at->parent)) {
    if (at->kind == ObjectKind::numa_node) {
      return at;
    }
    top = at;
  }
  const TopologyObject* only = nullptr;
  for (const TopologyObject* node : topology.of_kind(ObjectKind::numa_node)) {
    const TopologyObject* above = node;
    while (above != top && above != nullptr) {
      above = topology.find(above->parent);
    }
    if (above != nullptr && only != nullptr) {
      return nullptr;
    }
    only = above != nullptr ? node : only;
  }
  return only;
}

} // namespace reckon
