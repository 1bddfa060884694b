// SPDX-License-Identifier: Apache-2.0
#include "topology/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace reckon {
namespace {
constexpr std::array<std::string_view, 11> k_kinds{
    "machine",    "package", "numa_node", "cache",         "core",       "host_bridge",
    "pci_bridge", "gpu",     "nic",       "memory_device", "link_switch"};
constexpr std::array<std::string_view, 3> k_peer_link_kinds{"nvlink", "xgmi", "socket"};

/// Transfers per second of one lane, in the order of the generations from 1.0 on.
constexpr std::array<double, 7> k_pcie_generations{2.5e9, 5e9, 8e9, 16e9, 32e9, 64e9, 128e9};
} // namespace

std::string_view name_of(ObjectKind kind) {
  return k_kinds.at(static_cast<std::size_t>(kind));
}

std::string_view name_of(PeerLinkKind kind) {
  return k_peer_link_kinds.at(static_cast<std::size_t>(kind));
}

std::string PcieLink::text() const {
  for (std::size_t i = 0; i < k_pcie_generations.size(); ++i) {
    if (transfers_per_second == k_pcie_generations[i]) {
      return fmt::format("{}.0 x{}", i + 1, width);
    }
  }
  return fmt::format("{:g} GT/s x{}", transfers_per_second / 1e9, width);
}

double PcieLink::bytes_per_second() const {
  double coding = 128.0 / 130; // PCIe base specification, from 3.0 on
  if (transfers_per_second <= 5e9) {
    coding = 8.0 / 10;
  } else if (transfers_per_second >= 64e9) {
    coding = 242.0 / 256; // a flit without its error codes
  }
  return transfers_per_second * width * coding / 8;
}

const TopologyObject* Topology::find(std::string_view id) const {
  const auto it = std::find_if(objects.begin(), objects.end(),
                               [&](const TopologyObject& o) { return o.id == id; });
  return it == objects.end() ? nullptr : &*it;
}

std::vector<const TopologyObject*> Topology::of_kind(ObjectKind kind) const {
  std::vector<const TopologyObject*> found;
  for (const TopologyObject& o : objects) {
    if (o.kind == kind) {
      found.push_back(&o);
    }
  }
  return found;
}

bool Topology::is_in(const TopologyObject& object, std::string_view machine) const {
  const TopologyObject* at = &object;
  while (at != nullptr && !at->parent.empty()) {
    at = find(at->parent);
  }
  return at != nullptr && at->id == machine;
}

std::vector<std::string> Topology::ids_in(std::string_view machine, ObjectKind kind) const {
  std::vector<std::string> out;
  for (const TopologyObject* const object : of_kind(kind)) {
    if (is_in(*object, machine)) {
      out.push_back(object->id);
    }
  }
  return out;
}

std::vector<const TopologyObject*> Topology::children(std::string_view id) const {
  std::vector<const TopologyObject*> found;
  for (const TopologyObject& o : objects) {
    if (o.parent == id && !o.parent.empty()) {
      found.push_back(&o);
    }
  }
  return found;
}

} // namespace reckon
