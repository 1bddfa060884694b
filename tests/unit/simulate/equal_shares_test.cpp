// SPDX-License-Identifier: Apache-2.0
#include "simulate/equal_shares.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace reckon {
namespace {

using Kind = SimGraph::Kind;

/// Lanes that each wait and then write along a path; when their writes have crossed it.
class EqualSharesTest : public ::testing::Test {
protected:
  void write_after(double seconds, std::uint32_t path, double bytes) {
    const auto first = static_cast<std::uint32_t>(graph.ops.size());
    graph.append({Kind::delay, 0, 0, seconds}, {});
    graph.append({Kind::write, path, first + 2, bytes}, std::vector{first});
    graph.append({}, {}); // its await, which no latency puts off
    graph.end_lane();
  }
  std::vector<double> ends() {
    EXPECT_TRUE(stations_are_apart(graph));
    return play_graph(graph, *make_equal_shares_engine(graph), [](std::uint64_t) {}).lane_seconds;
  }
  static void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t lane = 0; lane < found.size(); ++lane) {
      EXPECT_NEAR(found[lane], expected[lane], 1e-12) << "lane " << lane;
    }
  }
  SimGraph graph;
};

TEST_F(EqualSharesTest, WhatAFlowGetsChangesWhenOthersComeAndGo) {
  // 12 bytes a second. Two have 6 each until 1 s and then three 4 each; the second of 12 bytes ends
  // at 2.5 s, when the first of 24 and the third of 12 have got 12 and 6: at 6 each the third ends
  // at 3.5 s, and the first has the last 6 by itself. The station is idle until the fourth comes.
  graph.hosts = 2;
  graph.station_bytes_per_s = {12};
  graph.paths = {{0, 1, 0, {{0}}}};
  write_after(0, 0, 24);
  write_after(0, 0, 12);
  write_after(1, 0, 12);
  write_after(10, 0, 12);
  expect_near(ends(), {4, 2.5, 3.5, 11});
}

TEST_F(EqualSharesTest, AFlowThatIsTwiceOnItsStationTakesTwiceAsMuchOfIt) {
  // 30 bytes a second: both flows have 10, one of them twice. Alone that one has 15.
  graph.hosts = 2;
  graph.station_bytes_per_s = {30};
  graph.paths = {{0, 1, 0, {{0}}}, {0, 1, 0, {{0, 0}}}};
  write_after(0, 0, 10);
  write_after(0, 1, 20);
  expect_near(ends(), {1, 1 + 10.0 / 15});
}

TEST_F(EqualSharesTest, StationsDoNotDisturbOneAnother) {
  // The first path's second hop is faster and used by both: 10 bytes cross the first in 5 s and, as
  // bytes come no earlier to a hop than its write has begun, the second in 2 s for each of two.
  graph.hosts = 3;
  graph.station_bytes_per_s = {2, 10, 100};
  graph.paths = {{0, 1, 0, {{0}, {1}}}, {2, 1, 0, {{2}, {1}}}};
  write_after(0, 0, 10);
  write_after(0, 1, 10);
  expect_near(ends(), {5, 2});
}

TEST(StationsAreApart, UnlessAFlowIsOnTwoOfThemAtOnceOrOtherTrafficIs) {
  SimGraph graph;
  graph.hosts = 2;
  graph.station_bytes_per_s = {1, 1};
  graph.paths = {{0, 1, 0, {}}, {0, 1, 0, {{0}, {1, 1}}}};
  EXPECT_TRUE(stations_are_apart(graph));
  graph.backgrounds = {{0, 1, 0}};
  EXPECT_FALSE(stations_are_apart(graph));
  graph.backgrounds.clear();
  graph.paths.push_back({1, 0, 0, {{1}, {0, 1}}});
  EXPECT_FALSE(stations_are_apart(graph));
}

} // namespace
} // namespace reckon
