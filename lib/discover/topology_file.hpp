// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/system_files.hpp"
#include "topology/topology.hpp"

#include <string>
#include <vector>

namespace reckon {

/// A machine from another program's file.
struct RecordedTopology {
  Topology topology;
  std::string format;               ///< "hwloc XML 2.0", "NCCL topology XML, version 1"
  std::vector<std::string> remarks; ///< facts in the file that the topology cannot express
};

/// The machine as `machine` ("m0"). The content decides on the format: hwloc's XML (`lstopo
/// machine.xml`), NCCL's and RCCL's topology XML (NCCL_TOPO_DUMP_FILE), or the matrix of
/// `nvidia-smi topo -m`. This machine is not queried. Throws Error{input} that names the file, the
/// line and a remedy.
[[nodiscard]] RecordedTopology read_topology_file(const std::string& path,
                                                  const std::string& machine = "m0");
/// The same for a file's content; `file` is for messages. `files` say what hwloc's XML lacks.
[[nodiscard]] RecordedTopology topology_from_text(const std::string& text, const std::string& file,
                                                  const std::string& machine = "m0",
                                                  const SystemFile& files = nullptr);

/// Where the tree of a recorded machine is, among its files.
inline constexpr const char* k_machine_xml = "/machine.xml";

} // namespace reckon
