// SPDX-License-Identifier: Apache-2.0
// Machines for tests of what collectives should give.
#pragma once

#include "documents/profile.hpp"
#include "expect/expectation.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>

namespace reckon::test {

struct GpuMachine {
  int gpus = 8;
  std::string gpu;      ///< name: decides whether the switch sums
  double nvlink = 0;    ///< of a GPU, one direction, bytes per second; 0: none
  bool switched = true; ///< else each GPU has the same links to each other
  bool sums = false;    ///< of the switch
  std::optional<PcieLink> pcie{};
  int nics = 0;
  double nic = 0; ///< of a port, bytes per second
  std::optional<PcieLink> nic_pcie{};
  std::string cable{}; ///< of all NICs
};

/// Each GPU has a PCIe switch with the NICs that are its share; where there are fewer NICs, several
/// GPUs share a switch with one.
inline Profile profile_of(const GpuMachine& machine) {
  Profile p;
  p.name = "box";
  p.machines = {{.id = "m0"}};
  auto& objects = p.topology.objects;
  objects = {{.id = "m0"}, {.id = "m0/numa0", .kind = ObjectKind::numa_node, .parent = "m0"}};
  const int switches = machine.nics == 0 ? machine.gpus : std::min(machine.gpus, machine.nics);
  for (int s = 0; s < switches; ++s) {
    objects.push_back({.id = fmt::format("m0/sw{}", s),
                       .kind = ObjectKind::pci_bridge,
                       .parent = "m0/numa0",
                       .pci_address = fmt::format("0000:{:02x}:00.0", s + 1),
                       .pcie = machine.pcie});
  }
  for (int i = 0; i < machine.gpus; ++i) {
    objects.push_back({.id = fmt::format("m0/gpu{}", i),
                       .kind = ObjectKind::gpu,
                       .parent = fmt::format("m0/sw{}", i * switches / machine.gpus),
                       .name = machine.gpu,
                       .pcie = machine.pcie});
  }
  for (int i = 0; i < machine.nics; ++i) {
    objects.push_back({.id = fmt::format("m0/nic{}", i),
                       .kind = ObjectKind::nic,
                       .parent = fmt::format("m0/sw{}", i * switches / machine.nics),
                       .link_bytes_per_second = machine.nic,
                       .pcie = machine.nic_pcie,
                       .cable = machine.cable});
  }
  if (machine.nvlink > 0 && machine.switched) {
    objects.push_back({.id = "m0/nvswitch0",
                       .kind = ObjectKind::link_switch,
                       .parent = "m0",
                       .sums = machine.sums});
  }
  const PeerLinkKind kind =
      machine.gpu.starts_with("MI") ? PeerLinkKind::xgmi : PeerLinkKind::nvlink;
  for (int i = 0; machine.nvlink > 0 && i < machine.gpus; ++i) {
    if (machine.switched) {
      p.topology.links.push_back({.kind = kind,
                                  .from = fmt::format("m0/gpu{}", i),
                                  .to = "m0/nvswitch0",
                                  .bytes_per_second = machine.nvlink});
    }
    for (int j = i + 1; !machine.switched && j < machine.gpus; ++j) {
      p.topology.links.push_back({.kind = kind,
                                  .from = fmt::format("m0/gpu{}", i),
                                  .to = fmt::format("m0/gpu{}", j),
                                  .bytes_per_second = machine.nvlink / (machine.gpus - 1)});
    }
  }
  return p;
}

inline Expected expected(const GpuMachine& machine, std::size_t machines,
                         const std::string& collective = "all_reduce", bool sharp = false) {
  const Profile profile = profile_of(machine);
  return expected_of(profile,
                     {.machine = "m0",
                      .gpus = profile.topology.ids_in("m0", ObjectKind::gpu),
                      .machines = machines,
                      .sharp = sharp},
                     {&asked_collective(collective, "collective")})
      .front();
}

/// Of a way, GB/s; 0: it does not exist there.
inline double ceiling(const Expected& expected, const std::string& way) {
  for (const WayCeiling& one : expected.ways) {
    if (one.way == way) {
      return one.bus_bytes_per_second / 1e9;
    }
  }
  return 0;
}

} // namespace reckon::test
