// SPDX-License-Identifier: Apache-2.0
#include "strategies/lane_places.hpp"

#include "support/machines.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>

namespace reckon {
namespace {

using testing::ElementsAre;

TopologyObject& add(Topology& t, ObjectKind kind, const std::string& id,
                    const std::string& parent = "") {
  return t.objects.emplace_back(TopologyObject{.id = id, .kind = kind, .parent = parent});
}

/// Two nodes with cores of two processors each: node 0 has cores (0, 4) and (1, 5), node 1 (2, 6)
/// and (3, 7); ports eth0 to eth2 hang from node 0, eth3 from node 1.
Topology machine() {
  Topology t;
  add(t, ObjectKind::machine, "m0");
  for (int n = 0; n < 2; ++n) {
    const std::string id = fmt::format("m0/numa{}", n);
    TopologyObject& node = add(t, ObjectKind::numa_node, id, "m0");
    node.os_index = n;
    node.cpus = {2 * n, 2 * n + 4, 2 * n + 1, 2 * n + 5};
    for (int c = 2 * n; c < 2 * n + 2; ++c) {
      add(t, ObjectKind::core, fmt::format("m0/core{}", c), id).cpus = {c, c + 4};
    }
  }
  for (int p = 0; p < 4; ++p) {
    add(t, ObjectKind::nic, fmt::format("m0/port{}", p), fmt::format("m0/numa{}", p / 3)).name =
        fmt::format("eth{}", p);
  }
  return t;
}

const std::vector<std::string> k_ports{"m0/port0", "m0/port1", "m0/port2", "m0/port3"};

TEST(LanePlaces, ALaneIsOnACoreNextToItsPortAndCoresAreSharedLast) {
  // Node 0 has the lanes of three ports and two cores: the third lane gets the second processor of
  // the first core. Node 1 has one lane.
  EXPECT_THAT(lane_places(machine(), k_ports, 4),
              ElementsAre(LanePlace{"eth0", 0, 0}, LanePlace{"eth1", 0, 1}, LanePlace{"eth2", 0, 4},
                          LanePlace{"eth3", 1, 2}));
}

TEST(LanePlaces, ACoresSecondProcessorComesAfterAllCoresHoweverTheyAreNumbered) {
  // One node, cores (0, 1) and (2, 3): neighbours in number share a core.
  Topology t;
  add(t, ObjectKind::machine, "m0");
  TopologyObject& node = add(t, ObjectKind::numa_node, "m0/numa0", "m0");
  node.os_index = 0;
  node.cpus = {0, 1, 2, 3};
  add(t, ObjectKind::core, "m0/core0", "m0/numa0").cpus = {0, 1};
  add(t, ObjectKind::core, "m0/core1", "m0/numa0").cpus = {2, 3};
  add(t, ObjectKind::nic, "m0/port0", "m0/numa0").name = "eth0";
  EXPECT_THAT(lane_places(t, {"m0/port0"}, 4),
              ElementsAre(LanePlace{"eth0", 0, 0}, LanePlace{"eth0", 0, 2}, LanePlace{"eth0", 0, 1},
                          LanePlace{"eth0", 0, 3}));
}

TEST(LanePlaces, EveryPortGetsAsManyLanesAndNoProcessorOneMoreThanAnotherOfItsNode) {
  const Topology t = machine();
  for (std::size_t lanes = 4; lanes <= 32; lanes += 4) {
    std::map<std::string, std::size_t> of_port;
    std::map<std::pair<int, int>, std::size_t> of_cpu;
    std::map<int, std::size_t> of_node;
    for (const LanePlace& place : lane_places(t, k_ports, lanes)) {
      ++of_port[place.port];
      ++of_cpu[{*place.numa_node, *place.cpu}];
      ++of_node[*place.numa_node];
      const std::vector<int>& near = t.find(fmt::format("m0/numa{}", *place.numa_node))->cpus;
      EXPECT_THAT(near, testing::Contains(*place.cpu));
    }
    EXPECT_EQ(of_port.size(), 4U);
    for (const auto& [port, count] : of_port) {
      EXPECT_EQ(count, lanes / 4) << port;
    }
    for (const auto& [place, count] : of_cpu) { // four processors a node
      EXPECT_LE(count, (of_node[place.first] + 3) / 4) << lanes;
    }
  }
}

TEST(LanePlaces, APortWhoseNodeIsNotKnownLeavesTheProcessorOpen) {
  Topology t = machine();
  t.objects.back().parent = "m0";
  EXPECT_THAT(lane_places(t, {"m0/port3", "10.0.0.1"}, 2),
              ElementsAre(LanePlace{"eth3", std::nullopt, std::nullopt},
                          LanePlace{"10.0.0.1", std::nullopt, std::nullopt}));
  // Of a machine with one node it is that one.
  std::erase_if(t.objects, [](const TopologyObject& o) {
    return o.id == "m0/numa1" || o.parent == "m0/numa1";
  });
  EXPECT_THAT(lane_places(t, {"m0/port3"}, 1), ElementsAre(LanePlace{"eth3", 0, 0}));
  // And another machine's node is not.
  add(t, ObjectKind::machine, "m1");
  add(t, ObjectKind::nic, "m1/port0", "m1").name = "eth0";
  EXPECT_THAT(lane_places(t, {"m1/port0"}, 1),
              ElementsAre(LanePlace{"eth0", std::nullopt, std::nullopt}));
  EXPECT_THAT(lane_places(t, {"m0/port3"}, 1), ElementsAre(LanePlace{"eth3", 0, 0}));
}

TEST(LanePlaces, ANicBehindASwitchIsNextToTheNodeOfItsHostBridge) {
  EXPECT_EQ(lane_places(test::byteps_pcie_machine(), {"m0/nic0"}, 1).front().numa_node, 0);
}

} // namespace
} // namespace reckon
