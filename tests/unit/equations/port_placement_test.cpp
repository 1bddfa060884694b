// SPDX-License-Identifier: Apache-2.0
#include "equations/port_placement.hpp"

#include "equations/placement.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace reckon {
namespace {

using Loads = std::vector<std::uint64_t>;

TEST(BySpeed, GivesAFasterInterfaceMore) {
  // Speeds 2 and 1. 6 -> 0 (3 < 6), 4 -> 1 (10/2 = 5 > 4), 3 -> 0 (9/2 = 4.5 < 7), 2 -> 0 (11/2
  // = 5.5 < 6): 11 and 4.
  const Balance balance = balance_by_speed({6, 4, 3, 2}, {2, 1});
  EXPECT_EQ(balance.bin_of, (std::vector<std::size_t>{0, 1, 0, 0}));
  EXPECT_EQ(balance.loads, (Loads{11, 4}));
}

TEST(BySpeed, OfEqualSpeedsIsLongestFirst) {
  const Loads loads{3, 7, 2, 5, 4, 3};
  EXPECT_EQ(balance_by_speed(loads, {5, 5}).bin_of, balance_longest_first(loads, 2).bin_of);
}

TEST(BySpeed, RefusesNoInterfacesAndSpeedsThatAreNone) {
  EXPECT_ERROR(balance_by_speed({1}, {}));
  EXPECT_ERROR(balance_by_speed({1}, {1, 0}));
  EXPECT_ERROR(balance_by_speed({1}, {std::numeric_limits<double>::infinity()}));
}

TEST(AsPhubReleased, RecordsTheLoadOfAnotherItem) {
  // Sorted 9 9 9 1 1 1, recorded 1 1 1 9 9 9. 9 -> 0, 9 -> 1 (0 < 1), 9 -> 0 (a tie of 1 and 1, the
  // lower bin): 18; then 1 -> 1 (1 < 2): its record is 10. 1 -> 0 (2 < 10): 11. 1 -> 1.
  EXPECT_EQ(balance_as_phub_released({1, 1, 1, 9, 9, 9}, 2).loads, (Loads{19, 11}));
}

TEST(EqualLayout, InterfacesAndCoresOfANodeAreNeighbours) {
  // As machines number them: the first half of both is node 0; of five interfaces the odd one, too.
  const ServerLayout layout = equal_layout(5, 4, 2);
  const auto node_of = [&](std::size_t i) { return layout.interfaces[i].node; };
  EXPECT_EQ((std::vector{node_of(0), node_of(1), node_of(2), node_of(3), node_of(4)}),
            (std::vector<std::size_t>{0, 0, 0, 1, 1}));
  EXPECT_EQ(layout.core_node, (std::vector<std::size_t>{0, 0, 1, 1}));
}

TEST(PlaceOnPorts, FollowsEachInterfaceToItsNodesCores) {
  // Two nodes with an interface and two cores each, chunks 5 4 3 2. 5 -> i0, 4 -> i1, 3 -> i1 (7 <
  // 8), 2 -> i0 (7). Cores of node 0: 5 | 2, of node 1: 4 | 3.
  const PortPlacement placement = place_on_ports({5, 4, 3, 2}, equal_layout(2, 4, 2));
  EXPECT_EQ(placement.interface_bytes, (Loads{7, 7}));
  EXPECT_EQ(placement.node_bytes, (Loads{7, 7}));
  EXPECT_EQ(placement.core_bytes, (Loads{5, 2, 4, 3}));
  EXPECT_EQ(
      placement.lanes,
      (std::vector<PortLane>{{0, 0, 0, 1, 5}, {0, 0, 1, 1, 2}, {1, 1, 2, 1, 4}, {1, 1, 3, 1, 3}}));
  EXPECT_EQ(placement.lane_of, (std::vector<std::size_t>{0, 2, 3, 1}));
}

TEST(PlaceOnPorts, ACoreOfTwoInterfacesHasAQueueAtEach) {
  // One node, two interfaces, one core.
  const PortPlacement placement = place_on_ports({4, 4, 4}, equal_layout(2, 1, 1));
  EXPECT_EQ(placement.core_bytes, (Loads{12}));
  EXPECT_EQ(placement.lanes, (std::vector<PortLane>{{0, 0, 0, 2, 8}, {1, 0, 0, 1, 4}}));
}

TEST(PlaceOnPorts, ANodeWithoutInterfacesGetsNothing) {
  ServerLayout layout = equal_layout(1, 1, 1);
  layout.core_node.push_back(1);
  const PortPlacement placement = place_on_ports({4}, layout);
  EXPECT_EQ(placement.core_bytes, (Loads{4, 0}));
  EXPECT_EQ(placement.node_bytes, (Loads{4, 0}));
}

TEST(PlaceOnPorts, RefusesALayoutThatCannotBe) {
  EXPECT_ERROR(equal_layout(1, 4, 2));
  EXPECT_ERROR(equal_layout(4, 1, 2));
  EXPECT_ERROR(equal_layout(1, 1, 0));
  ServerLayout layout = equal_layout(1, 1, 1);
  layout.core_node.front() = 1;
  EXPECT_ERROR(place_on_ports({1}, layout));
}

TEST(Evenness, OfUnequalInterfacesIsByTheirSpeed) {
  // 9 bytes on speeds 2 and 1 would be 6 and 3. 6 -> 0 (3 < 6), 3 -> 1 (3 < 4.5): even.
  ServerLayout layout = equal_layout(2, 2, 2);
  layout.interfaces[0].bytes_per_s = 2;
  const Loads chunks{6, 3};
  const PlacementEvenness even = evenness_of(place_on_ports(chunks, layout), layout, chunks);
  EXPECT_DOUBLE_EQ(even.interfaces.over_mean, 1);
  EXPECT_DOUBLE_EQ(even.interfaces.at_most, (9.0 + 6.0) / 9.0); // one more of the longest
  EXPECT_DOUBLE_EQ(even.nodes.over_mean, 1);
  EXPECT_DOUBLE_EQ(even.cores.over_mean, 6 / 4.5); // cores are equal, whatever their interfaces
  EXPECT_DOUBLE_EQ(even.cores.at_most, 6 / 4.5);   // one core for each node: all that it gets
}

TEST(Evenness, OfNothingIsOne) {
  const ServerLayout layout = equal_layout(2, 2, 1);
  EXPECT_EQ(evenness_of(place_on_ports({}, layout), layout, {}).cores.over_mean, 1);
}

TEST(Exchange, IsTheLongestOfPortAndCoreAndAChunkOfEachWorker) {
  // 2 chunks of 100 B on an interface of 100 B/s that needs 0.5 s for each write: 3 s a worker. A
  // core sums 50 B/s: 4 s a worker. Two workers: 8 s; then 2 (0.5 + 1 + 2) to fill.
  const PortPlacement placement = place_on_ports({100, 100}, equal_layout(1, 1, 1));
  EXPECT_DOUBLE_EQ(exchange_s(placement, {0.5, 100, 50, 2}, 100), 8 + 7);
  const double free = std::numeric_limits<double>::infinity();
  EXPECT_DOUBLE_EQ(exchange_s(placement, {0.5, 100, free, 2}, 100), 6 + 3);
}

} // namespace
} // namespace reckon
