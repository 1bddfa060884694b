// SPDX-License-Identifier: Apache-2.0
#include "support/inside_profiles.hpp"

#include <cmath>
#include <string>

namespace reckon::test {

void add_link_rate(Profile& profile, const std::string& test, const std::string& from,
                   const std::string& to, double bytes_per_second) {
  Cell cell;
  cell.key.test = test;
  cell.key.from = from;
  cell.key.to = to;
  cell.status = CellStatus::published;
  cell.unit = "bytes_per_second";
  cell.bytes_convention = "payload";
  cell.min = cell.p50 = cell.p99 = cell.max = bytes_per_second;
  profile.cells.push_back(std::move(cell));
}

void add_link_both_ways(Profile& profile, const std::string& a, const std::string& b,
                        double bytes_per_second) {
  add_link_rate(profile, "link_bandwidth", a, b, bytes_per_second);
  add_link_rate(profile, "link_bandwidth", b, a, bytes_per_second);
}

void add_object(Profile& profile, ObjectKind kind, const std::string& id,
                const std::string& parent) {
  TopologyObject object{.id = id, .kind = kind, .parent = parent};
  profile.topology.objects.push_back(std::move(object));
}

Profile random_inside_profile(std::mt19937_64& random, std::size_t gpus) {
  const auto chance = [&](unsigned of) { return random() % of == 0; };
  const auto uniform = [&] { return static_cast<double>(random() >> 11U) * 0x1p-53; };
  const double spread = chance(3) ? 0.0 : 2.0;
  const auto rate = [&](double around) { return around * std::exp2(spread * (2 * uniform() - 1)); };
  Profile profile;
  profile.name = "random";
  profile.source = "made for a test";
  profile.machines.push_back({.id = "m0", .name = "random"});
  const auto add = [&](ObjectKind kind, const std::string& id, const std::string& parent) {
    add_object(profile, kind, id, parent);
  };
  const auto link = [&](const std::string& a, const std::string& b, double around) {
    add_link_rate(profile, "link_bandwidth", a, b, rate(around));
    add_link_rate(profile, "link_bandwidth", b, a, rate(around));
  };
  add(ObjectKind::machine, "m0", "");
  const std::size_t nodes = 1 + random() % 2;
  std::vector<std::string> switches;
  for (std::size_t node = 0; node < nodes; ++node) {
    const std::string numa = "m0/numa" + std::to_string(node);
    add(ObjectKind::numa_node, numa, "m0");
    if (node > 0) {
      link("m0/numa0", numa, 30e9);
    }
    for (std::size_t s = 0; s <= random() % 2; ++s) {
      switches.push_back("m0/sw" + std::to_string(switches.size()));
      add(ObjectKind::pci_bridge, switches.back(), numa);
      link(switches.back(), numa, 12e9);
    }
  }
  const std::size_t count = 2 + random() % (gpus - 1);
  for (std::size_t g = 0; g < count; ++g) {
    const std::string id = "m0/gpu" + std::to_string(g);
    const std::string& parent = switches[random() % switches.size()];
    add(ObjectKind::gpu, id, parent);
    link(id, parent, 12e9);
  }
  if (chance(2)) {
    const std::string parent = chance(2) ? switches[random() % switches.size()] : "m0/numa0";
    add(ObjectKind::nic, "m0/nic0", parent);
    link("m0/nic0", parent, 12e9);
  }
  const bool nvlink = chance(3);
  const bool slow_pairs = chance(2);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      const std::string from = "m0/gpu" + std::to_string(a);
      const std::string to = "m0/gpu" + std::to_string(b);
      if (a < b && nvlink && chance(2)) {
        PeerLink peer;
        peer.from = from;
        peer.to = to;
        peer.bytes_per_second = rate(25e9);
        profile.topology.links.push_back(peer);
      } else if (a != b && slow_pairs && chance(2)) {
        add_link_rate(profile, "device_to_device_memcpy_write_ce", from, to, rate(8e9));
        if (chance(4)) {
          profile.cells.back().status = CellStatus::unsupported;
        }
      }
    }
  }
  if (chance(2)) {
    add_link_rate(profile, "memory_read_bandwidth", "m0", "", rate(40e9));
    add_link_rate(profile, "memory_write_bandwidth", "m0", "", rate(40e9));
  }
  if (chance(2)) {
    for (std::size_t node = 0; node < nodes; ++node) {
      add_link_rate(profile, "stream_copy", "m0/numa" + std::to_string(node), "", rate(60e9));
    }
  }
  if (chance(2)) {
    add_link_rate(profile, "reduce_sum", "m0", "", rate(20e9));
    profile.cells.back().key.dtype = "fp32";
    profile.cells.back().key.sources = 2;
  }
  return profile;
}

} // namespace reckon::test
