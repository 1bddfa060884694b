// SPDX-License-Identifier: Apache-2.0
#include "discover/discover.hpp"

#include "core/error.hpp"
#include "discover/cuda.hpp"
#include "discover/hwloc_tree.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

namespace reckon {
namespace {

HwlocTopology load_this_machine() {
  return load_hwloc(
      "hwloc_topology_set_flags",
      [](hwloc_topology_t topology) {
        // hwloc leaves out what a cgroup forbids by itself, but not what taskset does.
        return hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM |
                                                      HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING);
      },
      [](const char* step) { fail_errno(step, errno); });
}

/// hwloc's XML, which stands for this machine elsewhere. Files beside it say the rest.
std::string xml_of(hwloc_topology_t topology) {
  char* text = nullptr;
  int bytes = 0;
  if (hwloc_topology_export_xmlbuffer(topology, &text, &bytes, 0) != 0) {
    fail_errno("hwloc_topology_export_xmlbuffer", errno);
  }
  const std::string xml(text);
  hwloc_free_xmlbuffer(topology, text);
  return xml;
}

/// CUDA knows names and memory sizes; hwloc knows where the GPUs are. The address joins them.
void add_cuda(Discovery& discovery, const CudaGpus& cuda) {
  Topology& topology = discovery.topology;
  std::size_t extra = topology.of_kind(ObjectKind::gpu).size();
  for (const CudaGpu& gpu : cuda.gpus) {
    auto found = std::find_if(topology.objects.begin(), topology.objects.end(), [&](const auto& o) {
      return o.kind == ObjectKind::gpu && o.pci_address == gpu.pci_address;
    });
    if (found == topology.objects.end()) { // a container may hide the PCI tree
      TopologyObject made;
      made.id = fmt::format("m0/gpu{}", extra++);
      made.kind = ObjectKind::gpu;
      made.parent = "m0";
      made.pci_address = gpu.pci_address;
      found = topology.objects.insert(topology.objects.end(), std::move(made));
    }
    found->name = gpu.name;
    found->bytes = gpu.bytes;
    discovery.cuda_gpus.push_back(found->id);
  }
}

} // namespace

Discovery discover(SystemFiles& files) {
  for (const char* const variable :
       {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH"}) {
    if (std::getenv(variable) != nullptr) {
      fail(ErrorKind::unavailable,
           fmt::format("discover: {} makes hwloc describe another machine; unset it to measure "
                       "this one",
                       variable));
    }
  }
  const HwlocTopology loaded = load_this_machine();
  Discovery found;
  found.topology = topology_from_hwloc(loaded.get(), "m0", files.reader());
  files.put(k_machine_xml, xml_of(loaded.get()));
  const CudaGpus cuda = list_cuda_gpus();
  add_cuda(found, cuda);
  if (cuda.gpus.empty()) {
    found.remarks.push_back("no CUDA GPU: " + cuda.why_none);
  }
  return found;
}

Discovery discover() {
  SystemFiles files;
  return discover(files);
}

Topology discover_topology() {
  return discover().topology;
}

} // namespace reckon
