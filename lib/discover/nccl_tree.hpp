// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <functional>
#include <string>
#include <vector>

namespace pugi {
class xml_node;
}

namespace reckon {

struct NcclTree {
  Topology topology;
  std::vector<std::string> remarks; ///< facts in the file that the topology cannot express
};

/// The tree of one machine out of the <system> element of NCCL's topology XML (version 1) or
/// RCCL's (version 2): NUMA nodes with their processors, PCIe switches, GPUs, NICs, then NVLinks
/// and xGMI links with the bandwidths that their vendors give for the GPU's generation. NVSwitches
/// become one link_switch. GPUs are numbered by `dev` where each has one of its own, everything
/// else in the order of the file with NUMA nodes sorted.
///
/// Such a file tells of no host bridges and no cores. `place` says where in the file an element
/// stands, for messages: "topo.xml: line 3". Throws Error{input}.
[[nodiscard]] NcclTree
topology_from_nccl(const pugi::xml_node& system, const std::string& machine,
                   const std::function<std::string(const pugi::xml_node&)>& place);

} // namespace reckon
