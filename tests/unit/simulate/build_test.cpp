// SPDX-License-Identifier: Apache-2.0
#include "simulate/build.hpp"

#include "fixtures.hpp"
#include "support/refusals.hpp"

#include <limits>

namespace reckon {
namespace {

using namespace test;

TEST(BuildGraph, OpsKeepTheirOrderAndWritesFindTheirAwaits) {
  Schedule s = idle(2);
  const std::uint32_t first = await(s, 0, 1, 9);
  write(s, 0, 1, 100, 7, {first});
  await(s, 1, 0, 7);
  write(s, 1, 0, 50, 9);
  const SimGraph graph = build_graph(s, ports(2, 1000, 0.5));
  ASSERT_EQ(graph.ops.size(), 4U);
  EXPECT_EQ(graph.lane_begin, (std::vector<std::uint32_t>{0, 2, 4}));
  EXPECT_EQ(graph.ops[1].kind, SimGraph::Kind::write);
  EXPECT_EQ(graph.ops[1].awaited, 2U);
  EXPECT_EQ(graph.ops[3].awaited, 0U);
  EXPECT_EQ(graph.dependencies_of(1)[0], 0U);
  EXPECT_EQ(graph.paths[graph.ops[1].target].latency_s, 0.5);
}

TEST(BuildGraph, BytesMayWaitBetweenStationsUnlessTheScenarioHasNoBuffers) {
  // Ranks 0 and 2 share rank 1's port; rank 3's is rank 1's alone.
  using Hops = std::vector<std::vector<std::uint32_t>>;
  SimNetwork network = ports(4, 1000);
  Schedule s = idle(4);
  write(s, 0, 1, 100, 7);
  write(s, 2, 1, 100, 8);
  write(s, 1, 3, 100, 7);
  await(s, 1, 0, 7);
  await(s, 1, 2, 8);
  await(s, 3, 1, 7);
  const auto hops = [&](bool no_buffers) {
    Scenario scenario;
    scenario.no_buffers = no_buffers;
    std::vector<Hops> all;
    for (const SimGraph::Path& path : build_graph(s, network, scenario).paths) {
      all.push_back(path.hops);
    }
    return all;
  };
  // Stations are numbered as they are in the network, those that nobody uses left out.
  EXPECT_EQ(hops(false), (std::vector<Hops>{{{0}, {2}}, {{1}}, {{3}, {2}}}));
  EXPECT_EQ(hops(true), (std::vector<Hops>{{{0, 2}}, {{1, 4}}, {{3, 2}}}));
  network.stations.station_bytes_per_s[7] = 999; // rank 3's port is slower than rank 1's
  EXPECT_EQ(hops(false)[1], (Hops{{1}, {4}}));
}

TEST(BuildGraph, AStationThatLimitsNothingIsLeftOut) {
  SimNetwork network = ports(2, 1000);
  network.stations.station_bytes_per_s[0] = std::numeric_limits<double>::infinity();
  Schedule s = idle(2);
  send(s, 0, 1, 100, 7);
  const SimGraph graph = build_graph(s, network);
  EXPECT_EQ(graph.paths[0].hops, (std::vector<std::vector<std::uint32_t>>{{0}}));
  EXPECT_EQ(graph.station_bytes_per_s, (std::vector<double>{1000}));
}

TEST(BuildGraph, WhatAWriteCostsBesideItsBytesIsInTheRateOfTheFirstStation) {
  // 100 bytes at 1000 a second and 0.1 s: 500 a second. 50 bytes: 0.05 + 0.1 s, as 75 bytes take.
  SimNetwork network = ports(2, 1000);
  network.write_overhead_s = 0.1;
  Schedule s = idle(2);
  write(s, 0, 1, 100, 7);
  write(s, 0, 1, 50, 8);
  await(s, 1, 0, 7);
  await(s, 1, 0, 8);
  const SimGraph graph = build_graph(s, network);
  EXPECT_NEAR(graph.station_bytes_per_s[0], 500, 1e-9);
  EXPECT_NEAR(graph.station_bytes_per_s[1], 1000, 1e-9);
  EXPECT_NEAR(graph.ops[0].amount, 100, 1e-9);
  EXPECT_NEAR(graph.ops[1].amount, 75, 1e-9);
}

TEST(BuildGraph, AWriteThatNobodyAwaitsIsAnError) {
  Schedule s = idle(2);
  write(s, 0, 1, 100, 7);
  await(s, 1, 0, 8);
  EXPECT_ERROR(build_graph(s, ports(2, 1000)));
}

} // namespace
} // namespace reckon
