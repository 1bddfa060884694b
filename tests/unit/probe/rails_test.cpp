// SPDX-License-Identifier: Apache-2.0
#include "probe/rails.hpp"

#include "core/error.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <tuple>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Topology tree_of(const std::vector<std::pair<std::string, std::string>>& nics) {
  Topology tree;
  for (const auto& [name, address] : nics) {
    tree.objects.push_back({.id = "m0/nic" + name,
                            .kind = ObjectKind::nic,
                            .parent = "m0",
                            .name = name,
                            .pci_address = address});
  }
  return tree;
}

TEST(RailsOfAMachine, StandInTheOrderOfTheirPciAddresses) {
  const Topology tree = tree_of(
      {{"ib1 mlx5_0", "0000:c1:00.0"}, {"ib0 mlx5_1", "0000:17:00.0"}, {"eth0", "0000:03:00.0"}});
  EXPECT_THAT(rails_of(tree, {"mlx5_0", "docker0", "mlx5_1"}), ElementsAre("mlx5_1", "mlx5_0"))
      << "a bridge is no rail where the tree knows the NICs";
  EXPECT_THAT(rails_of(tree, {"d10", "d9"}), ElementsAre("d9", "d10")) << "none is in the tree";
}

TEST(CommonRails, ArePairedInOrderWhereEachMachineHasNamesOfItsOwn) {
  const Rails rails = common_rails({{"a0", "a1"}, {"b0", "b1"}}, {"w0", "w1"});
  EXPECT_THAT(rails.ports, ElementsAre(ElementsAre("a0", "a1"), ElementsAre("b0", "b1")));
  EXPECT_THAT(rails.left_out, IsEmpty());
}

TEST(CommonRails, LeaveOutWhatAMachineLacks) {
  // By order d2 of w1 would be paired with d1 of w0.
  const Rails one = common_rails({{"d0", "d1", "d2"}, {"d0", "d2"}}, {"w0", "w1"});
  EXPECT_THAT(one.ports, ElementsAre(ElementsAre("d0", "d2"), ElementsAre("d0", "d2")));
  EXPECT_THAT(one.left_out, SizeIs(1));
  // As many in both, but one cable is out in each.
  const Rails each = common_rails({{"d0", "d1", "d3"}, {"d0", "d2", "d3"}}, {"w0", "w1"});
  EXPECT_THAT(each.ports, ElementsAre(ElementsAre("d0", "d3"), ElementsAre("d0", "d3")));
  EXPECT_THAT(each.left_out, SizeIs(2));
}

TEST(CommonRails, AreTwoAtLeast) {
  for (const std::vector<std::vector<std::string>>& ports :
       std::vector<std::vector<std::vector<std::string>>>{
           {{"d0"}, {"d0"}}, {{}, {}}, {{"d0", "d1"}, {"d1", "d2"}}, {{"a0", "a1"}, {"b0"}}}) {
    try {
      static_cast<void>(common_rails(ports, {"w0", "w1"}));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    }
  }
}

TEST(CommonRails, OfOnePortNamedTwiceAreRefused) {
  try {
    static_cast<void>(common_rails({{"lo", "lo"}, {"lo", "eth0"}}, {"w0", "w1"}));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_THAT(error.what(), testing::HasSubstr("w0"));
  }
}

TEST(RailSchedule, MeetsEachPairOnceOnEachRailAndOnAllOfThem) {
  for (const int machines : {2, 5, 8}) {
    constexpr int k_rails = 3;
    std::map<std::vector<int>, std::multiset<std::pair<int, int>>> met;
    for (const RailStep& step : rail_steps(machines, k_rails)) {
      std::set<int> busy;
      for (const auto& [a, b] : step.pairs) {
        EXPECT_TRUE(busy.insert(a).second && busy.insert(b).second) << "a machine is in two pairs";
        met[step.rails].insert({a, b});
      }
    }
    EXPECT_THAT(met, SizeIs(k_rails + 1));
    for (const auto& [rails, pairs] : met) {
      EXPECT_THAT(rails, testing::AnyOf(SizeIs(1), ElementsAre(0, 1, 2)));
      EXPECT_THAT(pairs, SizeIs(machines * (machines - 1) / 2));
      EXPECT_THAT(std::set(pairs.begin(), pairs.end()), SizeIs(pairs.size()));
    }
  }
}

TEST(RailSchedule, TakesSecondsForEightMachinesOfEightRails) {
  // 7 rounds of 9 steps, each some 0.3 s.
  EXPECT_NEAR(rails_time(8, 8).count(), 7 * 9 * 0.32, 0.1);
  EXPECT_EQ(rails_time(8, 0), Seconds(0));
}

} // namespace
} // namespace reckon
