// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/system_files.hpp"
#include "topology/topology.hpp"

#include <functional>
#include <memory>
#include <string>

struct hwloc_topology; // hwloc_topology_t is a pointer to it

namespace reckon {

struct DestroyHwloc {
  void operator()(hwloc_topology* topology) const noexcept;
};
using HwlocTopology = std::unique_ptr<hwloc_topology, DestroyHwloc>;

/// hwloc's topology, with devices, after `choose` has told it the machine. A step that fails,
/// `choose` under the name `choice`, is reported to `failed`, which throws; errno has the reason.
[[nodiscard]] HwlocTopology load_hwloc(const char* choice,
                                       const std::function<int(hwloc_topology*)>& choose,
                                       const std::function<void(const char* step)>& failed);

/// The tree of one machine out of a loaded hwloc topology: machine, packages, NUMA nodes, caches
/// (data and unified), cores, host bridges, PCIe switches, GPUs, NICs, parents before children,
/// then NVLinks and xGMI links where hwloc knows them. Ids are `machine` + "/" + "pkg", "numa",
/// "l3-", "core", "bridge", "gpu" or "nic" + hwloc's logical number (GPUs, NICs and bridges: order
/// of their PCI addresses).
///
/// A NUMA node stands between its package (or machine) and the caches and cores next to it, so that
/// the way up from a core, GPU or NIC passes the memory local to it, where the machine says so.
/// Only processors that this process may use are listed; a NUMA node without any keeps its memory.
/// A machine whose firmware hides its cores gets one core for each processor.
/// Of PCI bridges only those are in the tree that lead to a GPU or a NIC, a switch as one object.
/// `files` is asked for the speeds of ports and PCIe links; pass nullptr for a topology of another
/// machine.
[[nodiscard]] Topology topology_from_hwloc(hwloc_topology* topology, const std::string& machine,
                                           const SystemFile& files);

} // namespace reckon
