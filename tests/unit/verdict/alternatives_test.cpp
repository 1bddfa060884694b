// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"
#include "verdict/verdict.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// "m0/gpu1 -> m0/gpu0 45 % of 22", the place, its share and what it should be in GB/s.
std::vector<std::string> told(const Profile& profile) {
  std::vector<std::string> out;
  for (const Finding& f : judge(profile).findings) {
    EXPECT_EQ(f.kind, FindingKind::alternative) << f.place;
    EXPECT_FALSE(f.remedy.empty());
    out.push_back(fmt::format("{} {:.0f} % of {:.3g}", f.place, 100 * f.share,
                              f.expected.number.value_or(0) * 1e-9));
  }
  return out;
}

/// One machine with two NUMA nodes, each with a switch (PCIe 4.0 x16, 31.5 GB/s) above two GPUs.
Profile workstation() {
  Profile p;
  p.name = "workstation";
  p.machines.push_back({.id = "m0", .cores = 8});
  auto& objects = p.topology.objects;
  objects.push_back({.id = "m0"});
  for (int n = 0; n < 2; ++n) {
    const std::string numa = fmt::format("m0/numa{}", n);
    const std::string sw = fmt::format("m0/bridge{}", n);
    objects.push_back({.id = numa, .kind = ObjectKind::numa_node, .parent = "m0", .cpus = {n}});
    objects.push_back({.id = sw,
                       .kind = ObjectKind::pci_bridge,
                       .parent = numa,
                       .pci_address = fmt::format("0000:0{}:00.0", n),
                       .pcie = PcieLink{16e9, 16}});
    for (int i = 2 * n; i < 2 * n + 2; ++i) {
      objects.push_back(
          {.id = fmt::format("m0/gpu{}", i), .kind = ObjectKind::gpu, .parent = sw, .name = "GPU"});
    }
  }
  return p;
}

/// A value as other programs publish it: no samples.
Cell& rate(Profile& profile, CellKey key, double gigabytes_per_second) {
  Cell& cell = profile.cells.emplace_back();
  cell.key = std::move(key);
  cell.status = CellStatus::published;
  cell.unit = k_bytes_per_second;
  cell.min = cell.p50 = cell.p99 = cell.max = gigabytes_per_second * 1e9;
  return cell;
}

void copies(Profile& profile, const std::string& from, const std::string& to, double direct,
            double staged) {
  CellKey key{.test = k_device_write_ce, .from = from, .to = to, .direction = k_one_way};
  key.state = "peer";
  rate(profile, key, direct);
  key.state = "staged";
  rate(profile, key, staged);
}

TEST(Alternatives, DirectCopiesThatAreSlowerThanThoseByTheHost) {
  // 9.9 / 22 = 45 %. All six pairs of three GPUs: the machine's fault, told once.
  Profile all = workstation();
  for (const auto& [a, b] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
    copies(all, fmt::format("m0/gpu{}", a), fmt::format("m0/gpu{}", b), 9.9, 22);
    copies(all, fmt::format("m0/gpu{}", b), fmt::format("m0/gpu{}", a), 9.9, 22);
  }
  EXPECT_THAT(told(all), ElementsAre("m0/gpu0 -> m0/gpu1 45 % of 22"));
  EXPECT_EQ(judge(all).findings.front().others, 5U);

  Profile one = workstation();
  copies(one, "m0/gpu0", "m0/gpu1", 22, 20);
  copies(one, "m0/gpu1", "m0/gpu0", 21, 20);
  copies(one, "m0/gpu2", "m0/gpu3", 9, 20);
  copies(one, "m0/gpu3", "m0/gpu2", 9, 20);
  EXPECT_THAT(told(one),
              ElementsAre("m0/gpu2 -> m0/gpu3 45 % of 20", "m0/gpu3 -> m0/gpu2 45 % of 20"));
  Profile near = workstation();
  copies(near, "m0/gpu0", "m0/gpu1", 18, 20);
  EXPECT_THAT(told(near), IsEmpty()) << "within the noise of two cells, a fifth";
}

TEST(Alternatives, OneDirectionAgainstTheOther) {
  Profile p = workstation();
  const CellKey down{.test = k_host_to_device_ce, .from = "m0/numa0", .to = "m0/gpu0"};
  const CellKey up{.test = k_device_to_host_ce, .from = "m0/gpu0", .to = "m0/numa0"};
  rate(p, down, 26);
  Cell& back = rate(p, up, 20.9); // 80.4 %
  EXPECT_THAT(told(p), IsEmpty());
  back.p50 = 19.5e9; // 75 %; of PCIe's 31.5 it is 62 %, which is no finding of its own
  EXPECT_THAT(told(p), ElementsAre("m0/gpu0 -> m0/numa0 75 % of 26"));
  for (Cell& cell : p.cells) {
    cell.key.state = "pageable"; // the driver's own copy is another one each way
  }
  EXPECT_THAT(told(p), IsEmpty());

  Profile port = workstation();
  port.machines.push_back({.id = "m1"});
  rate(port, {.test = k_fan_out, .from = "m0", .transport = "tcp", .direction = k_one_way}, 10);
  rate(port, {.test = k_fan_in, .from = "m0", .transport = "tcp", .direction = k_one_way}, 4);
  EXPECT_THAT(told(port), ElementsAre("m0 40 % of 10"));
}

TEST(Alternatives, BothWaysAtOnceAgainstEachAlone) {
  Profile p = workstation();
  const CellKey way{.test = k_device_write_ce,
                    .from = "m0/gpu0",
                    .to = "m0/gpu1",
                    .direction = k_one_way,
                    .state = "peer"};
  CellKey back = way;
  std::swap(back.from, back.to);
  CellKey both = way;
  both.test = k_device_two_way_ce;
  both.direction = k_two_way;
  rate(p, way, 20);
  rate(p, back, 20);
  Cell& together = rate(p, both, 25); // of 40: 62.5 %
  EXPECT_THAT(told(p), IsEmpty());
  together.p50 = 21e9; // as half duplex
  EXPECT_THAT(told(p), ElementsAre("m0/gpu0 -> m0/gpu1 52 % of 40"));

  // Of machines' pairs each way has a cell of its own.
  Profile pair;
  pair.machines = {{.id = "m0"}, {.id = "m1"}};
  CellKey alone{.test = k_pair_bandwidth, .from = "m0", .to = "m1", .direction = k_one_way};
  rate(pair, alone, 10);
  alone.direction = k_two_way;
  rate(pair, alone, 5.5);
  EXPECT_THAT(told(pair), ElementsAre("m0 -> m1 55 % of 10"));
}

TEST(Alternatives, AllAtOnceAgainstEachAloneAndWhatTheyShare) {
  Profile p = workstation();
  for (int i = 0; i < 4; ++i) {
    rate(p,
         {.test = k_host_to_device_ce,
          .from = fmt::format("m0/numa{}", i / 2),
          .to = fmt::format("m0/gpu{}", i),
          .state = "pinned"},
         25);
  }
  // Two GPUs want 50 of a switch's 31.51 GB/s, so all can have 63, and 0.6 of it is 37.8.
  Cell& all = rate(p, {.test = k_host_to_all_ce, .from = "m0", .to = "m0", .state = "pinned"}, 38);
  EXPECT_THAT(told(p), IsEmpty());
  all.p50 = 37e9;
  EXPECT_THAT(told(p), ElementsAre("m0 59 % of 63"));
  // 20 GB/s a node is what memory has: 40 together.
  for (const char* node : {"m0/numa0", "m0/numa1"}) {
    rate(p, {.test = k_stream_copy, .from = node}, 20);
  }
  EXPECT_THAT(told(p), IsEmpty());

  Profile ports;
  ports.machines = {{.id = "m0"}, {.id = "m1"}};
  ports.topology.objects = {{.id = "m0"}, {.id = "m1"}};
  for (int i = 0; i < 4; ++i) {
    ports.topology.objects.push_back(
        {.id = fmt::format("m0/nic{}", i), .kind = ObjectKind::nic, .parent = "m0"});
    rate(ports, {.test = k_single_port, .from = fmt::format("m0/nic{}", i)}, 10);
  }
  // Nothing is known of their ways: they only have to reach what one does, 0.6 of 10.
  Cell& port = rate(ports, {.test = k_port_bandwidth, .from = "m0"}, 7);
  EXPECT_THAT(told(ports), IsEmpty());
  port.p50 = 5e9;
  EXPECT_THAT(told(ports), ElementsAre("m0 50 % of 10"));
  ports.topology.objects.push_back(
      {.id = "m0/numa0", .kind = ObjectKind::numa_node, .parent = "m0", .cpus = {0}});
  EXPECT_THAT(told(ports), ElementsAre("m0 12 % of 40")); // 5 / 40 = 12.5
}

TEST(Alternatives, SeveralPeersAndHalvesAgainstPairs) {
  Profile p;
  p.machines = {{.id = "m0"}, {.id = "m1"}, {.id = "m2"}};
  for (const char* to : {"m1", "m2"}) {
    rate(p, {.test = k_pair_bandwidth, .from = "m0", .to = to, .direction = k_one_way}, 10);
  }
  rate(p, {.test = k_fan_out, .from = "m0", .direction = k_one_way}, 7);
  EXPECT_THAT(told(p), ElementsAre("m0 70 % of 10"));

  Profile halves;
  halves.name = "four";
  halves.machines = {{.id = "m0", .count = 4}};
  rate(halves, {.test = k_bisection_by_order}, 11).ceiling = {"the ports inside", 20e9};
  EXPECT_THAT(told(halves), ElementsAre("four 55 % of 20"));
  halves.machines.front().rack = "r0"; // an uplink is a reason
  EXPECT_THAT(told(halves), IsEmpty());
}

TEST(Alternatives, PortThatIsFasterThanTheSlot) {
  Profile p = workstation();
  p.topology.objects.push_back({.id = "m0/nic0",
                                .kind = ObjectKind::nic,
                                .parent = "m0",
                                .name = "mlx5_0",
                                .pci_address = "0000:01:00.0",
                                .link_bytes_per_second = 25e9,
                                .pcie = PcieLink{32e9, 4}}); // 15.75 GB/s: 63 %
  EXPECT_THAT(told(p), ElementsAre("m0/nic0 63 % of 25"));
  // A second function in another domain: 31.5 together at one cable, else it lacks as much.
  TopologyObject second = p.topology.objects.back();
  second.id = "m0/nic1";
  second.pci_address = "0002:01:00.0";
  p.topology.objects.push_back(second);
  EXPECT_THAT(told(p), ElementsAre("m0/nic0 63 % of 25", "m0/nic1 63 % of 25"));
  for (TopologyObject& object : p.topology.objects) {
    object.cable = object.kind == ObjectKind::nic ? "cable0" : "";
  }
  EXPECT_THAT(told(p), IsEmpty());
  // Another machine's cable of the same name is another one.
  p.topology.objects.push_back({.id = "m1", .kind = ObjectKind::machine});
  p.topology.objects.push_back(second);
  p.topology.objects.back().id = "m1/nic0";
  p.topology.objects.back().parent = "m1";
  p.topology.objects.back().cable = "cable0";
  EXPECT_THAT(told(p), ElementsAre("m1/nic0 63 % of 25"));
}

} // namespace
} // namespace reckon
