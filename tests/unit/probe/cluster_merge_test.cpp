// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"
#include "probe/cluster_merge.hpp"

#include "documents/ceilings.hpp"
#include "documents/cells.hpp"
#include "documents/document.hpp"
#include "documents/json.hpp"
#include "fakes.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

MemberResult machine(double in, double out, const std::string& fingerprint = "cpu",
                     const std::string& rack = "") {
  MemberResult m;
  MachineGroup own;
  own.id = "m0";
  own.cores = 2;
  m.own.machines = {own};
  m.own.fingerprint = fingerprint;
  test::add(m.own.topology, "m0", ObjectKind::machine, "");
  test::add(m.own.topology, "m0/core0", ObjectKind::core, "m0");
  m.own.cells = {test::cell_with({.test = k_reduce_sum, .from = "m0", .bytes = 1024}, {in})};
  m.transport = "tcp;ofi_rxm";
  m.part = 65536;
  m.window = 4;
  m.in_two_way = {in, in, in};
  m.out_two_way = {out, out, out};
  m.latency = {1e-5};
  m.rack = rack;
  return m;
}

TEST(PortSamples, AreOfBothDirectionsWhenTheyAgree) {
  EXPECT_EQ(port_samples(machine(100, 101)), (std::vector<double>{100, 100, 100, 101, 101, 101}));
  // An asymmetric port: what both directions can do is what the slower one can.
  EXPECT_EQ(port_samples(machine(100, 50)), (std::vector<double>{50, 50, 50}));
  EXPECT_EQ(port_samples(machine(50, 100)), (std::vector<double>{50, 50, 50}));
  EXPECT_TRUE(port_samples(machine(0, 100)).empty());
  MemberResult unsettled = machine(60, 70); // and with one peer it did 100
  unsettled.seen_twice = 100;
  EXPECT_EQ(port_samples(unsettled), (std::vector<double>{100}));
}

TEST(Runs, EqualMachinesThatFollowEachOtherAreOne) {
  using Firsts = std::vector<std::size_t>;
  EXPECT_EQ(runs_of({machine(100, 100), machine(102, 102), machine(98, 98)}), (Firsts{0}));
  // 4 % is another port; back to 100 is a run of its own, or rank i would not be machine i.
  EXPECT_EQ(runs_of({machine(100, 100), machine(96, 96), machine(100, 100)}), (Firsts{0, 1, 2}));
  EXPECT_EQ(runs_of({machine(100, 100), machine(100, 100, "other cpu")}), (Firsts{0, 1}));
  EXPECT_EQ(runs_of({machine(100, 100, "cpu", "rack0"), machine(100, 100, "cpu", "rack1")}),
            (Firsts{0, 1}));
  MemberResult more_cores = machine(100, 100);
  more_cores.own.machines[0].cores = 4;
  EXPECT_EQ(runs_of({machine(100, 100), more_cores}), (Firsts{0, 1}));
}

TEST(Merge, GivesAProfileThatReadsBackAndNamesItsMembersInRankOrder) {
  const std::vector<std::string> ids{"a", "b", "c", "d"};
  std::vector<MemberResult> members{machine(100, 100), machine(101, 101), machine(50, 50),
                                    machine(100, 100)};
  members[0].curve = {1, {{4096, {1e-3, 3e-3}}}, {{4096, 16}}};
  members[1].curve = {0, {{4096, {2e-3}}}, {{4096, 16}}};
  Profile profile;
  profile.name = "cluster";
  profile.source = "test";
  merge_machines(profile, members, ids);
  ASSERT_EQ(profile.machines.size(), 3U);
  EXPECT_EQ(profile.machines[0].members, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(profile.machines[1].members, (std::vector<std::string>{"c"}));
  EXPECT_EQ(profile.machines[2].members, (std::vector<std::string>{"d"}));
  EXPECT_EQ(profile.machines[0].count, 2U);
  EXPECT_NE(profile.topology.find("m1/core0"), nullptr);

  const auto only = [&](const char* test, const char* from) {
    const std::vector<const Cell*> cells = profile.select({.test = test, .from = from});
    EXPECT_EQ(cells.size(), 1U) << test << " of " << from << ": a plan takes whichever comes last";
    return cells.empty() ? Cell() : *cells.front();
  };
  EXPECT_DOUBLE_EQ(only(k_port_bandwidth, "m0").p50, 100.5); // 6 samples of 100, 6 of 101
  EXPECT_DOUBLE_EQ(only(k_port_bandwidth, "m1").p50, 50);
  EXPECT_EQ(only(k_fabric_latency, "m2").n, 1U);
  EXPECT_DOUBLE_EQ(only(k_fabric_write, "m0").p50, 2e-3); // 1, 3 and 2 ms
  EXPECT_EQ(only(k_fabric_write, "m0").key.to, "m0");
  EXPECT_EQ(only(k_reduce_sum, "m0").n, 2U);
  EXPECT_EQ(profile_from_json(to_json(profile), "merged").machines, profile.machines);
}

TEST(Merge, PortsOfAMachineHangFromWhereItsTreeHasThemAndAreInTheOrderOfTheLanes) {
  std::vector<MemberResult> members{machine(100, 100), machine(100, 100)};
  // As fast as the worker that tried it, so only the ports tell the two apart.
  members[1].single_ports = {{"d10", {90, 90}}, {"d9", {95, 95}}};
  members[1].peers_bytes_per_s = 100;
  Topology& tree = members[1].own.topology;
  tree.objects.clear();
  test::add(tree, "m0/numa0", ObjectKind::numa_node, "m0");
  test::add(tree, "m0/nic0", ObjectKind::nic, "m0/numa0").name = "d9";
  Profile profile;
  profile.name = "cluster";
  profile.source = "test";
  merge_machines(profile, members, {"w0", "s0"});
  ASSERT_EQ(profile.machines.size(), 2U);
  ASSERT_NE(profile.topology.find("m1/port0"), nullptr);
  EXPECT_EQ(profile.topology.find("m1/port0")->name, "d10");
  EXPECT_EQ(profile.topology.find("m1/port0")->parent, "m1");
  EXPECT_EQ(profile.topology.find("m1/port1")->parent, "m1/numa0");
  CellKey key{.test = k_port_bandwidth, .from = "m1"};
  ASSERT_EQ(profile.select(key).size(), 1U);
  EXPECT_EQ(profile.select(key).front()->ceiling, (Ceiling{k_peers_ceiling, 100}));
  key.from = "m0";
  EXPECT_EQ(profile.select(key).front()->ceiling, std::nullopt);
}

TEST(CellOf, SaysWhyItHasNoValue) {
  const CellKey key{.test = k_pair_latency};
  EXPECT_EQ(cell_of(key, {}, "no time").status, CellStatus::skipped);
  EXPECT_EQ(cell_of(key, {}, "no time").reason, "no time");
  EXPECT_EQ(cell_of(key, {0, 0}, "no time").reason, "too little arrived to tell a rate");
  EXPECT_EQ(cell_of(key, {0, 2, 4}, "").p50, 3); // what is not known does not count
  EXPECT_EQ(cell_of(key, {1, 2, 3}, "").status, CellStatus::noisy);
  const std::vector<double> many(250, 7.0);
  EXPECT_EQ(cell_of(key, many, "").samples.size(), 84U); // every third
  EXPECT_EQ(cell_of(key, many, "").unit, k_seconds);
  EXPECT_EQ(cell_of({.test = k_port_bandwidth}, many, "").unit, k_bytes_per_second);
}

TEST(MemberIds, AreTheHostsWhereThoseDiffer) {
  const auto ids = [](std::vector<std::string> names) {
    std::vector<ClusterHost> hosts;
    for (std::string& name : names) {
      hosts.push_back({"boot", std::move(name), "network", 1, 0, {}});
    }
    return member_ids(hosts);
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids({"w0", "w1"}), (Ids{"w0", "w1"}));
  EXPECT_EQ(ids({"w0", "w0"}), (Ids{"r0", "r1"}));
  EXPECT_EQ(ids({"w0", ""}), (Ids{"r0", "r1"}));
  EXPECT_EQ(ids({"m0", "w0"}), (Ids{"r0", "r1"}));    // a group's name
  EXPECT_EQ(ids({"rack1", "w0"}), (Ids{"r0", "r1"})); // a rack's
  EXPECT_EQ(ids({"m0a", "racks"}), (Ids{"m0a", "racks"}));
}

} // namespace
} // namespace reckon
