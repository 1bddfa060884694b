// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/system_files.hpp"
#include "topology/topology.hpp"

#include <map>
#include <string>

namespace reckon {

/// A name of the port of a NIC, which is the same for all functions that share it; empty: the files
/// below /sys do not say. `devices`: its network and RDMA devices, as in TopologyObject::name.
/// Source: the kernel's Documentation/ABI/testing/sysfs-class-net, and for RDMA NCCL's rule: a
/// card's functions with the same number share a port, those of one slot do not.
[[nodiscard]] std::string port_of(const std::string& pci_address, const std::string& devices,
                                  const SystemFile& files);
/// The port by the identity of its card and the number of a function, "0000:17:00.1".
[[nodiscard]] std::string port_by_function(const std::string& card, const std::string& pci_address);
/// Sets the cable of NICs with the same port, by their ids; a NIC alone at its port has none.
void share_cables(Topology& topology, const std::map<std::string, std::string>& ports);

} // namespace reckon
