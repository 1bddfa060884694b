// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/system_files.hpp"
#include "discover/topology_file.hpp"
#include "topology/topology.hpp"

#include <string>
#include <vector>

namespace reckon {

struct Discovery {
  Topology topology;
  std::vector<std::string> cuda_gpus; ///< ids of the GPUs that CUDA offers, in CUDA's order
  /// Missing devices, with the reason: "no CUDA GPU: ...".
  std::vector<std::string> remarks;
};

/// This machine as machine "m0", restricted to the processors of an outer cpuset or taskset. Throws
/// Error{unavailable} when hwloc was told (HWLOC_XMLFILE, HWLOC_SYNTHETIC, ...) to describe another
/// machine, Error{operation} when it fails. `files`, which are this machine's, get k_machine_xml.
[[nodiscard]] Discovery discover(SystemFiles& files);
[[nodiscard]] Discovery discover();

/// discover().topology
[[nodiscard]] Topology discover_topology();

} // namespace reckon
