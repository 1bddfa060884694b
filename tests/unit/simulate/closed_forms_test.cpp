// SPDX-License-Identifier: Apache-2.0
//
// What the papers' equations say exactly must come out of the simulation within 0.1 %.

#include "fixtures.hpp"
#include "strategies/lower.hpp"
#include "support/refusals.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <utility>

namespace reckon {
namespace {

using namespace test;

constexpr double k_bytes = 400e6;  ///< M
constexpr double k_rate = 12.5e9;  ///< B
constexpr double k_within = 0.001; ///< relative

TEST(ClosedForms, ARingTakesItsBytesAndALatencyForEachStep) {
  RECKON_NEEDS_SIMULATOR();
  // 2 (n - 1) steps of M / n bytes and a latency: 2 (n - 1) (M / (n B) + alpha).
  for (const std::size_t n : {2U, 8U}) {
    for (const double alpha : {0.0, 1e-6, 10e-6, 50e-6, 1e-3}) {
      const Plan plan = plan_of("ring", n, 0, n, static_cast<std::uint64_t>(k_bytes / double(n)),
                                64, [](std::uint64_t p) { return p; });
      const double formula =
          2.0 * static_cast<double>(n - 1) * (k_bytes / (static_cast<double>(n) * k_rate) + alpha);
      EXPECT_NEAR(simulated(lower(plan), ports(n, k_rate, alpha)).seconds, formula,
                  k_within * formula)
          << n << " ranks, latency " << alpha;
    }
  }
}

TEST(ClosedForms, WritesOfNanosecondsTakeTheirTimeToo) {
  RECKON_NEEDS_SIMULATOR();
  // 64 bytes take 0.16 ns of a port; as many parts as keep it busy to the end.
  constexpr std::size_t n = 4, m = 1000, part = 64;
  constexpr double rate = 400e9;
  const Plan plan =
      plan_of("ring", n, 0, n * m, part, n * m, [](std::uint64_t p) { return p % n; });
  const double formula = 2.0 * (n - 1) * m * part / rate;
  EXPECT_NEAR(simulated(lower(plan), ports(n, rate)).seconds, formula, k_within * formula);
}

TEST(ClosedForms, ServersOfTheirOwnAreAsFastAsTheBusiestPortAndFillByOnePiece) {
  RECKON_NEEDS_SIMULATOR();
  // n workers, k servers, each with m parts: a server's port takes n M / k each way, a worker's M.
  // Sums go back while later parts come, but the last one only when all have come: 1 + 1/m.
  constexpr std::size_t n = 8;
  for (const std::size_t k : {1U, 2U, 4U, 8U}) {
    for (const std::uint64_t m : {1U, 10U, 100U}) {
      const Plan plan =
          plan_of("ps_noncolocated", n, k, m * k, static_cast<std::uint64_t>(k_bytes) / (m * k),
                  m * k, [&](std::uint64_t p) { return n + p % k; });
      const double steady = static_cast<double>(n) * k_bytes / (static_cast<double>(k) * k_rate);
      const double formula = steady * (1 + 1 / static_cast<double>(m));
      EXPECT_NEAR(simulated(lower(plan), ports(n + k, k_rate)).seconds, formula, k_within * formula)
          << k << " servers, " << m << " parts each";
    }
  }
}

TEST(ClosedForms, ASplitInEqualStreamsTakesBytePSsOptimum) {
  RECKON_NEEDS_SIMULATOR();
  // BytePS, equation 6: 2 n (n - 1) M / ((n^2 + k n - 2 k) B). Connections share a port equally, so
  // a server has streams (lanes) in proportion to its share: 2 (n - 1) : (n - k) = 7 : 2 for 8
  // workers and 4 servers, 44 in all. The last part's sum goes back alone: 1 + 1/m of m parts each.
  // Exact where pushes cannot run ahead of what the ports they are for can take.
  Scenario unbuffered;
  unbuffered.no_buffers = true;
  constexpr std::uint64_t n = 8, k = 4, at_server = 7, at_worker = 2;
  constexpr std::uint64_t streams = k * at_server + n * at_worker;
  for (const std::uint64_t m : {1U, 10U, 100U}) {
    Plan plan = plan_of(
        "byteps_split", n, k, streams * m, static_cast<std::uint64_t>(k_bytes) / (streams * m),
        streams * m, [&](std::uint64_t p) {
          const std::uint64_t stream = p % streams;
          return stream < k * at_server ? n + stream % k : (stream - k * at_server) % n;
        });
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      const std::uint64_t stream = p % streams;
      plan.parts.lane[p] = stream < k * at_server ? stream / k : (stream - k * at_server) / n;
    }
    for (PlanRank& rank : plan.ranks) {
      rank.lanes = at_server;
    }
    const double optimum = 2.0 * n * (n - 1) * k_bytes / ((n * n + k * n - 2 * k) * k_rate);
    const double formula = optimum * (1 + 1 / static_cast<double>(m));
    EXPECT_NEAR(simulated(lower(plan), ports(n + k, k_rate), unbuffered).seconds, formula,
                k_within * formula)
        << m << " parts a stream";
  }
}

TEST(ClosedForms, RacksShareTheirUplink) {
  RECKON_NEEDS_SIMULATOR();
  // Two racks of two; ranks 0 and 1 write to 2 and 3 over uplinks of half a port: 4 M / B for
  // both, whether the writes are in one piece or many; inside a rack M / B.
  SimNetwork network = ports(4, k_rate);
  network.stations.station_bytes_per_s.insert(network.stations.station_bytes_per_s.end(),
                                              {k_rate / 2, k_rate / 2});
  network.names.insert(network.names.end(), {"rack a out", "rack b in"});
  Schedule s = idle(4);
  for (const std::uint32_t from : {0U, 1U}) {
    network.stations.paths[from][from + 2] = {2 * from, 8, 9, 2 * (from + 2) + 1};
    send(s, from, from + 2, static_cast<std::uint64_t>(k_bytes), 1);
  }
  send(s, 2, 3, static_cast<std::uint64_t>(k_bytes), 2);
  const SimResult result = simulated(s, network);
  EXPECT_NEAR(result.seconds, 4 * k_bytes / k_rate, k_within * 4 * k_bytes / k_rate);
  EXPECT_NEAR(result.lane_seconds[2], 4 * k_bytes / k_rate, k_within * 4 * k_bytes / k_rate);
  EXPECT_NEAR(result.lane_seconds[3], 4 * k_bytes / k_rate, k_within * 4 * k_bytes / k_rate);
}

TEST(ClosedForms, WhatAPortIsTooSlowForWaitsBeforeItUnlessTheNetworkKeepsNothing) {
  RECKON_NEEDS_SIMULATOR();
  // Ranks 0 and 1 each write 1e9 bytes to rank 2, whose port they share until 2 s. With buffers
  // rank 0's port is free at 1 s for a write to rank 3, which is there at 2 s; without, at 3 s.
  SimNetwork network = ports(4, 1e9);
  Schedule s = idle(4);
  const std::uint32_t first = write(s, 0, 2, 1'000'000'000, 1);
  write(s, 0, 3, 1'000'000'000, 2, {first});
  write(s, 1, 2, 1'000'000'000, 3);
  await(s, 2, 0, 1);
  await(s, 2, 1, 3);
  await(s, 3, 0, 2);
  Scenario scenario;
  EXPECT_NEAR(simulated(s, network, scenario).lane_seconds[3], 2, 1e-6);
  scenario.no_buffers = true;
  EXPECT_NEAR(simulated(s, network, scenario).lane_seconds[3], 3, 1e-6);
}

TEST(ClosedForms, EqualFlowsShareALinkFairlyWhateverTheirLatency) {
  RECKON_NEEDS_SIMULATOR();
  // Both leave rank 0 at half its rate: 2 s for 1e9 bytes each at 1e9; then each one's latency.
  SimNetwork network = ports(3, 1e9);
  network.stations.path_latency_s = {{0, 1e-6, 10e-3}, {0, 0, 0}, {0, 0, 0}};
  Schedule s = idle(3);
  for (const std::uint32_t to : {1U, 2U}) {
    send(s, 0, to, 1'000'000'000, 1);
  }
  const SimResult result = simulated(s, network);
  EXPECT_NEAR(result.lane_seconds[0], 2, 1e-6);
  EXPECT_NEAR(result.lane_seconds[1], 2 + 1e-6, 1e-6);
  EXPECT_NEAR(result.lane_seconds[2], 2 + 10e-3, 1e-6);
}

TEST(ClosedForms, BothWaysOfALinkAreItsOwn) {
  RECKON_NEEDS_SIMULATOR();
  Schedule s = idle(2);
  for (const std::uint32_t from : {0U, 1U}) {
    send(s, from, 1 - from, 1'000'000'000, 1);
  }
  EXPECT_NEAR(simulated(s, ports(2, 1e9)).seconds, 1, 1e-6);
}

TEST(ClosedForms, ASlowPortAStragglerAndOtherTrafficCostWhatTheyMust) {
  RECKON_NEEDS_SIMULATOR();
  SimNetwork network = ports(3, 1e9);
  network.op_seconds = [](std::size_t, const Op&) { return 0.25; };
  Schedule s = idle(3);
  const std::uint32_t summed = s.ranks[0].lanes[0].append({.kind = OpKind::reduce}, {});
  write(s, 0, 1, 1'000'000'000, 1, {summed});
  await(s, 1, 0, 1);
  const auto seconds = [&](const std::vector<std::string>& slow,
                           const std::vector<std::string>& stragglers,
                           const std::vector<std::string>& backgrounds) {
    return simulated(s, network, scenario_of({slow, stragglers, backgrounds}, network)).seconds;
  };
  EXPECT_NEAR(seconds({}, {}, {}), 1.25, 1e-6);
  EXPECT_NEAR(seconds({"link=rank 1 in:0.5"}, {}, {}), 2.25, 1e-6);
  EXPECT_NEAR(seconds({"rank=0:0.25"}, {}, {}), 4.25, 1e-6);
  EXPECT_NEAR(seconds({"rank=2:0.1"}, {}, {}), 1.25, 1e-6);
  EXPECT_NEAR(seconds({}, {"rank=0:3"}, {}), 1.75, 1e-6);
  // 0.2 GB/s of the port are gone: 1 / 0.8 s. A flow that wants more than half gets half.
  EXPECT_NEAR(seconds({}, {}, {"2->1:0.2GB/s"}), 0.25 + 1.25, 1e-6);
  EXPECT_NEAR(seconds({}, {}, {"0->1:5GB/s"}), 0.25 + 2, 1e-6);
  // From 0.75 s on: half is through by then, the other half takes 0.5 / 0.8.
  EXPECT_NEAR(seconds({}, {}, {"2->1:0.2GB/s@0.75s"}), 0.25 + 0.5 + 0.625, 1e-6);
}

TEST(ClosedForms, ALinkWithACurveTakesWhatTheCurveSays) {
  RECKON_NEEDS_SIMULATOR();
  // 1 ms for each write and then 1 GB/s, between ports of 10 GB/s: of the longest and of shorter
  // writes. Two connections of equal writes take turns.
  SimNetwork network = ports(2, 10e9);
  network.stations.station_bytes_per_s.push_back(1e9);
  network.names.emplace_back("0 -> 1");
  network.stations.station_busy.resize(5);
  network.stations.station_busy[4] = BusyCurve({{1, 1e-3}, {1'000'001, 2e-3}, {10'000'001, 11e-3}});
  network.stations.paths[0][1] = {0, 4, 3};
  for (const auto& [sizes, expected] :
       {std::pair(std::vector<std::uint64_t>{10'000'001}, 11e-3),
        std::pair(std::vector<std::uint64_t>{10'000'001, 1'000'001}, 13e-3),
        std::pair(std::vector<std::uint64_t>{10'000'001, 1, 1}, 13e-3)}) {
    Schedule s = idle(2);
    for (std::uint32_t i = 0; i < sizes.size(); ++i) {
      send(s, 0, 1, sizes[i], i);
    }
    EXPECT_NEAR(simulated(s, network).seconds, expected, k_within * expected);
  }
}

TEST(ClosedForms, AWriteToItselfTwiceOverALinkCountsTwice) {
  RECKON_NEEDS_SIMULATOR();
  // Two copies through one memory: each byte passes it twice.
  SimNetwork network = ports(2, 1e9);
  network.stations.paths[0][1] = {0, 0};
  Schedule s = idle(2);
  send(s, 0, 1, 1'000'000'000, 1);
  EXPECT_NEAR(simulated(s, network).seconds, 2, 1e-6);
}

TEST(ClosedForms, APlanThatComesToAHaltIsAnErrorThatSaysWhere) {
  RECKON_NEEDS_SIMULATOR();
  // Each waits for the other before it writes.
  Schedule s = idle(2);
  for (const std::uint32_t rank : {0U, 1U}) {
    const std::uint32_t came = await(s, rank, 1 - rank, 1);
    write(s, rank, 1 - rank, 100, 1, {came});
  }
  EXPECT_REFUSED(input, "lane 0", simulated(s, ports(2, 1e9)));
}

TEST(ClosedForms, MemoryGrowsAsTheWaysDoAndIsTheSimulatorsOwn) {
  RECKON_NEEDS_SIMULATOR();
  // A way has two hosts in SimGrid: a pointer for each pair of all hosts would be 537 MB.
  constexpr std::uint32_t k_ways = 4096;
  SimGraph graph;
  graph.simgrid = true;
  graph.hosts = 2;
  for (std::uint32_t way = 0; way < k_ways; ++way) {
    graph.station_bytes_per_s.push_back(1e9);
    graph.paths.push_back({0, 1, 0, {{way}}});
    graph.append({SimGraph::Kind::write, way, k_ways + way, 1e6}, {});
  }
  graph.end_lane();
  for (std::uint32_t way = 0; way < k_ways; ++way) {
    graph.append({}, {}); // an await
  }
  graph.end_lane();
  const std::string of_this_process(500'000'000, 'x');
  const SimResult result = simulated(graph);
  EXPECT_EQ(of_this_process.back(), 'x');
  EXPECT_NEAR(result.seconds, 1e-3, 1e-9);
  EXPECT_LT(result.peak_bytes, 400'000'000U);
  EXPECT_GT(result.peak_bytes, 10'000'000U);
}

TEST(ClosedForms, AProgramThatEndsWithoutAResultIsOneError) {
  for (const auto& [program, words] : {std::pair("/bin/true", "exited with status 0 and no result"),
                                       std::pair("/bin/false", "exited with status 1"),
                                       std::pair("/nonexistent", "No such file")}) {
    const char* const started = program;
    EXPECT_REFUSED(operation, words, simulate(SimGraph(), started, [](std::uint64_t) {}));
  }
}

TEST(ClosedForms, AResultOfAProgramThatFailedIsNone) {
  const std::string program = testing::TempDir() + "failing_simulator";
  std::ofstream(program) << "#!/bin/sh\n"
                            "echo '{\"engine\":\"none\",\"settings\":{},\"lane_seconds\":[],"
                            "\"seconds\":1,\"flows\":0,\"most_flows\":0,\"background_bytes\":[],"
                            "\"cpu_seconds\":0,\"peak_bytes\":0}'\n"
                            "echo 'out of luck' >&2\n"
                            "exit 3\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  EXPECT_REFUSED(operation, "out of luck", simulate(SimGraph(), program, [](std::uint64_t) {}));
  std::filesystem::remove(program);
}

} // namespace
} // namespace reckon
