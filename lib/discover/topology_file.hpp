// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <string>
#include <vector>

namespace reckon {

/// A machine out of a file that another program wrote.
struct RecordedTopology {
  Topology topology;
  std::string format;               ///< "hwloc XML 2.0", "NCCL topology XML, version 1"
  std::vector<std::string> remarks; ///< what the file says and the topology does not
};

/// The machine as `machine` ("m0"). The content decides on the format: hwloc's XML (`lstopo
/// machine.xml`) or NCCL's and RCCL's topology XML (NCCL_TOPO_DUMP_FILE). This machine is not asked
/// for anything. Throws Error{input} that names the file, the line and a remedy.
[[nodiscard]] RecordedTopology read_topology_file(const std::string& path,
                                                  const std::string& machine = "m0");
/// The same of a file's content; `file` is for messages.
[[nodiscard]] RecordedTopology topology_from_text(const std::string& text, const std::string& file,
                                                  const std::string& machine = "m0");

} // namespace reckon
