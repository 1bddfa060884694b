// SPDX-License-Identifier: Apache-2.0
#include "support/machines.hpp"

#include <array>
#include <string>

namespace reckon::test {
namespace {

TopologyObject& add(Topology& t, ObjectKind kind, const std::string& id,
                    const std::string& parent) {
  TopologyObject& o = t.objects.emplace_back();
  o.kind = kind;
  o.id = "m0/" + id;
  o.parent = parent == "m0" ? parent : "m0/" + parent;
  return o;
}

void add_pcie(Topology& t, ObjectKind kind, const std::string& id, const std::string& parent) {
  add(t, kind, id, parent).pcie = PcieLink{8e9, 16};
}

Topology two_processors() {
  Topology t;
  t.objects.emplace_back().id = "m0";
  for (const std::string n : {"0", "1"}) {
    add(t, ObjectKind::package, "pkg" + n, "m0");
    add(t, ObjectKind::numa_node, "numa" + n, "pkg" + n).os_index = std::stoi(n);
  }
  return t;
}

} // namespace

Topology byteps_pcie_machine() {
  Topology t = two_processors();
  for (int s = 0; s < 2; ++s) {
    const std::string n = std::to_string(s);
    add(t, ObjectKind::host_bridge, "hb" + n, "numa" + n);
    add_pcie(t, ObjectKind::pci_bridge, "sw" + n, "hb" + n);
    for (int g = 4 * s; g < 4 * s + 4; ++g) {
      add_pcie(t, ObjectKind::gpu, "gpu" + std::to_string(g), "sw" + n);
    }
  }
  add(t, ObjectKind::host_bridge, "hb2", "numa0");
  add_pcie(t, ObjectKind::nic, "nic0", "hb2");
  t.objects.back().link_bytes_per_second = 12.5e9;
  return t;
}

Topology byteps_nvlink_machine() {
  Topology t = two_processors();
  for (int s = 0; s < 4; ++s) {
    const std::string n = std::to_string(s);
    add(t, ObjectKind::host_bridge, "hb" + n, "numa" + std::to_string(s / 2));
    add_pcie(t, ObjectKind::pci_bridge, "sw" + n, "hb" + n);
    for (int g = 2 * s; g < 2 * s + 2; ++g) {
      add_pcie(t, ObjectKind::gpu, "gpu" + std::to_string(g), "sw" + n);
    }
  }
  add_pcie(t, ObjectKind::nic, "nic0", "sw0");
  t.objects.back().link_bytes_per_second = 12.5e9;
  constexpr std::array<std::array<int, 3>, 16> k_links{{{0, 1, 1},
                                                        {0, 2, 1},
                                                        {0, 3, 2},
                                                        {0, 4, 2},
                                                        {1, 2, 2},
                                                        {1, 3, 1},
                                                        {1, 5, 2},
                                                        {2, 3, 2},
                                                        {2, 6, 1},
                                                        {3, 7, 1},
                                                        {4, 5, 1},
                                                        {4, 6, 1},
                                                        {4, 7, 2},
                                                        {5, 6, 2},
                                                        {5, 7, 1},
                                                        {6, 7, 2}}};
  for (const auto& [a, b, count] : k_links) {
    t.links.push_back({.kind = PeerLinkKind::nvlink,
                       .from = "m0/gpu" + std::to_string(a),
                       .to = "m0/gpu" + std::to_string(b),
                       .count = count,
                       .bytes_per_second = 25e9 * count});
  }
  return t;
}

} // namespace reckon::test
