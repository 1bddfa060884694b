// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// A part of a machine.
///
/// A PCIe switch is one object, its upstream port. Root ports and downstream ports are no objects,
/// because a PCIe link joins two ends only: objects at these ports are children of the object
/// above. The exception is a port with several functions of one card below it, which share its
/// link.
enum class ObjectKind {
  machine,
  package,
  numa_node,
  cache,
  core,
  host_bridge, ///< where PCI buses begin: the way from them to the memory of a NUMA node
  pci_bridge,  ///< a PCIe switch, or, without an address, the port of a card with several functions
  gpu,
  nic,
  memory_device,
  link_switch ///< all NVSwitches of a machine as one: GPUs hang from it by peer links
};

/// snake_case names as they stand in documents.
[[nodiscard]] std::string_view name_of(ObjectKind kind);

/// A PCIe link as its two ends agreed on it, or as they could.
struct PcieLink {
  double transfers_per_second = 0; ///< of one lane: 8e9 is PCIe 3.0
  int width = 0;                   ///< lanes
  /// "3.0 x16"; "8 GT/s x16" for a rate that is no generation's.
  [[nodiscard]] std::string text() const;
  /// Payload of one direction after line coding (8b/10b, 128b/130b, from 6.0 on 242/256), before
  /// packet headers.
  [[nodiscard]] double bytes_per_second() const;
  bool operator==(const PcieLink&) const = default;
};

/// One part of a machine. Fields that do not apply are absent.
struct TopologyObject {
  std::string id; ///< unique in the document: "m0", "m0/numa0", "m0/core3", "m0/nic0"
  ObjectKind kind = ObjectKind::machine;
  std::string parent;          ///< id of the containing object; empty for a machine
  std::string name;            ///< model or operating-system name: "AMD EPYC", "eth0"; may be empty
  std::optional<int> os_index; ///< package, NUMA node or core number of the operating system
  std::optional<int> cache_level;     ///< 1, 2, 3
  std::optional<std::uint64_t> bytes; ///< memory of a NUMA node or GPU, size of a cache
  std::string pci_address;            ///< "0000:17:00.0"
  /// Rate of a NIC's network ports, or of another object's PCIe link; one direction, as negotiated
  /// now.
  std::optional<double> link_bytes_per_second;
  std::optional<PcieLink> pcie; ///< to the parent, as negotiated now
  /// The best link that both ends report to support.
  std::optional<PcieLink> pcie_possible;
  /// Rate of the PCIe link to the parent, where its generation and width are unknown (hwloc's XML
  /// lacks them): PcieLink::bytes_per_second() of the link as negotiated.
  std::optional<double> pcie_bytes_per_second;
  /// Of a NIC: which cable its port has. Functions of one card that name the same cable share its
  /// rate. Empty: a cable of its own.
  std::string cable;
  /// Of a link_switch: whether it adds what GPUs send and multicasts the sum (NVLink SHARP, from
  /// GPUs of compute capability 9.0 on). Absent: not known.
  std::optional<bool> sums;
  std::vector<int> cpus; ///< logical processors (of cores and NUMA nodes)
  bool operator==(const TopologyObject&) const = default;
};

/// A link between two objects beside the tree.
enum class PeerLinkKind {
  nvlink,
  xgmi,
  socket ///< between the NUMA nodes or packages of a machine: QPI, UPI, Infinity Fabric
};
[[nodiscard]] std::string_view name_of(PeerLinkKind kind);

struct PeerLink {
  PeerLinkKind kind = PeerLinkKind::nvlink;
  std::string from, to; ///< ids, `from` the one that comes first among the objects; works both ways
  int count = 1;        ///< links side by side
  std::optional<double> bytes_per_second; ///< of all `count` together, one direction
  bool operator==(const PeerLink&) const = default;
};

/// The tree of one or more machines, parents before children. Immutable once built; pure data.
struct Topology {
  std::vector<TopologyObject> objects;
  std::vector<PeerLink> links;

  /// nullptr for an unknown id.
  [[nodiscard]] const TopologyObject* find(std::string_view id) const;
  [[nodiscard]] std::vector<const TopologyObject*> of_kind(ObjectKind kind) const;
  /// Whether the object is this machine or in it.
  [[nodiscard]] bool is_in(const TopologyObject& object, std::string_view machine) const;
  /// Ids of a machine's objects of one kind, in order; empty for an unknown machine.
  [[nodiscard]] std::vector<std::string> ids_in(std::string_view machine, ObjectKind kind) const;
  [[nodiscard]] std::vector<const TopologyObject*> children(std::string_view id) const;
  bool operator==(const Topology&) const = default;
};

} // namespace reckon
