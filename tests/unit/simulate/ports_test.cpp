// SPDX-License-Identifier: Apache-2.0
//
// Ranks with several ports: each port a link of its own, of which a lane's writes pass one.

#include "../strategies/fixtures.hpp"
#include "fixtures.hpp"
#include "simulate/fold.hpp"
#include "simulate/prepare.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

using namespace test;

constexpr double k_bytes = 400e6;  ///< M
constexpr double k_rate = 1e9;     ///< B, of one port
constexpr double k_within = 0.001; ///< relative

/// `workers` with one port that is never the slowest, and a server with ports of these rates.
SimNetwork server_with(std::size_t workers, const std::vector<double>& rates,
                       const std::vector<double>& together = {}) {
  std::vector<std::vector<double>> all(workers, std::vector<double>{100 * k_rate});
  all.push_back(rates);
  return several_ports(all, together);
}

/// M in `m` parts for each of so many lanes, all under way.
Plan one_server(std::size_t workers, std::uint64_t lanes, std::uint64_t m) {
  return on_lanes(plan_of("ps_noncolocated", workers, 1, m * lanes,
                          static_cast<std::uint64_t>(k_bytes) / (m * lanes), m * lanes,
                          [&](std::uint64_t) { return workers; }),
                  lanes);
}

TEST(SeveralPorts, AServerWithKEqualPortsTakesAKthOfTheTime) {
  RECKON_NEEDS_SIMULATOR();
  // n workers push M into k ports and get it back; of m parts on each the last sum goes back alone:
  // n M / (k B) (1 + 1/m).
  constexpr std::size_t n = 4;
  for (const std::uint64_t k : {1U, 2U, 4U, 10U}) {
    for (const std::uint64_t m : {1U, 10U, 100U}) {
      const double formula =
          n * k_bytes / (static_cast<double>(k) * k_rate) * (1 + 1 / static_cast<double>(m));
      EXPECT_NEAR(
          simulated(lower(one_server(n, k, m)), server_with(n, std::vector<double>(k, k_rate)))
              .seconds,
          formula, k_within * formula)
          << k << " ports, " << m << " parts on each";
    }
  }
}

TEST(SeveralPorts, TheSlowestPortTakesItsLanesAsLongAsItMust) {
  RECKON_NEEDS_SIMULATOR();
  // Half of M passes each of two ports: n M / 2 over B, or over B / 2 of the one that is slowed.
  constexpr std::size_t n = 4;
  constexpr std::uint64_t m = 100;
  const Schedule schedule = lower(one_server(n, 2, m));
  const SimNetwork network = server_with(n, {k_rate, k_rate});
  const double whole = n * k_bytes / (2 * k_rate) * (1 + 1.0 / m);
  const auto seconds = [&](const ScenarioOptions& options) {
    return simulated(schedule, network, scenario_of(options, network)).seconds;
  };
  EXPECT_NEAR(seconds({}), whole, k_within * whole);
  EXPECT_NEAR(seconds({{"rank=4:0.5"}}), 2 * whole, k_within * 2 * whole);
  EXPECT_NEAR(seconds({{"link=rank 4 eth1 in:0.5", "link=rank 4 eth1 out:0.5"}}), 2 * whole,
              k_within * 2 * whole);
  // Pushes alone are slowed: sums leave as they come, the last at B.
  const double pushes = n * k_bytes / k_rate * (1 + 0.5 / m);
  EXPECT_NEAR(seconds({{"link=rank 4 eth1 in:0.5"}}), pushes, k_within * pushes);
}

TEST(SeveralPorts, UnlikePortsAreDoneTogetherWithBytesInProportion) {
  RECKON_NEEDS_SIMULATOR();
  // Ports of B, 2 B and 4 B, and of 7 parts in a row 1, 2 and 4 on their lanes: n M / (7 B), and
  // 1/m of it for the last of m parts on the slowest.
  constexpr std::size_t n = 4;
  constexpr std::uint64_t m = 100;
  Plan plan = one_server(n, 7, m);
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    plan.parts.lane[p] = p % 7 == 0 ? 0U : p % 7 < 3 ? 1U : 2U;
  }
  for (PlanRank& rank : plan.ranks) {
    rank.lanes = 3;
  }
  const double formula = n * k_bytes / (7 * k_rate) * (1 + 1.0 / m);
  EXPECT_NEAR(simulated(lower(plan), server_with(n, {k_rate, 2 * k_rate, 4 * k_rate})).seconds,
              formula, k_within * formula);
}

TEST(SeveralPorts, WhatAllCarryTogetherBindsThemTogether) {
  RECKON_NEEDS_SIMULATOR();
  // Four ports of B on a machine that carries 2 B: n M / (2 B).
  constexpr std::size_t n = 4;
  constexpr std::uint64_t m = 100;
  std::vector<double> together(n, 100 * k_rate);
  together.push_back(2 * k_rate);
  const double formula = n * k_bytes / (2 * k_rate) * (1 + 1.0 / m);
  const SimNetwork network = server_with(n, std::vector<double>(4, k_rate), together);
  EXPECT_NEAR(simulated(lower(one_server(n, 4, m)), network).seconds, formula, k_within * formula);
  // One lane has its port's rate all the same.
  const double alone = n * k_bytes / k_rate * (1 + 1.0 / m);
  EXPECT_NEAR(simulated(lower(one_server(n, 1, m)), network).seconds, alone, k_within * alone);
}

TEST(SeveralPorts, OtherTrafficTakesItsPartOfEachPort) {
  RECKON_NEEDS_SIMULATOR();
  // Ranks 0 and 1 have two ports each; M / 2 on each lane. 0.4 B of other traffic leaves each port
  // 0.8 B; more than it can get, half of each.
  const SimNetwork network = several_ports({{k_rate, k_rate}, {k_rate, k_rate}});
  Schedule s = idle(2);
  for (RankProgram& rank : s.ranks) {
    rank.lanes.resize(2);
  }
  for (std::uint32_t lane = 0; lane < 2; ++lane) {
    Op op{.peer = 1, .tag = 1, .bytes = static_cast<std::uint64_t>(k_bytes / 2)};
    s.ranks[0].lanes[lane].append(op, {});
    s.ranks[1].lanes[lane].append_await(0, 0, 1);
  }
  const auto seconds = [&](const char* background) {
    return simulated(s, network, scenario_of({{}, {}, {background}}, network)).seconds;
  };
  const double whole = k_bytes / (2 * k_rate);
  EXPECT_NEAR(simulated(s, network).seconds, whole, k_within * whole);
  EXPECT_NEAR(seconds("0->1:0.4GB/s"), whole / 0.8, k_within * whole / 0.8);
  EXPECT_NEAR(seconds("0->1:100GB/s"), 2 * whole, k_within * 2 * whole);
  EXPECT_NEAR(seconds("1->0:100GB/s"), whole, k_within * whole);
}

/// 6 workers with two ports each over 2 servers with one, four lanes.
struct Workers {
  Plan plan = on_lanes(plan_of("ps_noncolocated", 6, 2, 80, 1'000'000, 10,
                               [](std::uint64_t p) { return 6 + p / 4 % 2; }),
                       4);
  std::vector<std::vector<double>> rates{6, std::vector<double>{0.5e9, 0.25e9}};
  Workers() { rates.resize(8, std::vector<double>{1e9}); }

  /// Ranks played, with the same result as all of them.
  [[nodiscard]] std::size_t played(const ScenarioOptions& options = {}) const {
    const SimNetwork network = several_ports(rates, {}, 1e-5);
    const Scenario scenario = scenario_of(options, network);
    PrepareOptions prepare_options;
    const PreparedPlan folded = prepare(plan, lower, network, scenario, prepare_options);
    prepare_options.fold = false;
    const PreparedPlan whole = prepare(plan, lower, network, scenario, prepare_options);
    EXPECT_EQ(whole.schedule.ranks.size(), 8U);
    const auto seconds = [](const PreparedPlan& p) {
      return simulate(p.graph, k_simulator, [](std::uint64_t) {}).seconds;
    };
    const double all = seconds(whole);
    EXPECT_NEAR(seconds(folded), all, 1e-6 * all);
    return folded.schedule.ranks.size();
  }
};

TEST(SeveralPorts, RanksAreFoldedWhosePortsAreAlike) {
  RECKON_NEEDS_SIMULATOR();
  Workers workers;
  EXPECT_EQ(workers.played(), 2U + 2U);                                    // 6 workers by 2
  EXPECT_EQ(workers.played({{"link=rank 1 eth1 out:0.5"}}), 1U + 5U + 2U); // 5 are prime
  EXPECT_EQ(workers.played({{"rank=1:0.5", "rank=4:0.5"}}), 2U + 2U + 2U); // 2, and 4 by 2
  EXPECT_EQ(workers.played({{"rank=7:0.5"}}), 2U + 2U);
  EXPECT_EQ(workers.played({{}, {}, {"3->6:0.1GB/s"}}), 1U + 5U + 2U);
  // The same ports the other way about: the first lane passes the slow one.
  workers.rates[2] = workers.rates[5] = {0.25e9, 0.5e9};
  EXPECT_EQ(workers.played(), 2U + 2U + 2U);
}

/// Workers of one port of 1 GB/s, servers with ports "eth0", ... of these rates.
Profile with_ports(const std::vector<double>& rates, double together) {
  Profile p = cluster(1e9, together);
  CellKey key{.test = "single_port_bandwidth", .transport = "verbs"};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    key.from = fmt::format("cpu/port{}", i);
    p.cells.push_back(published(key, "bytes_per_second", rates[i]));
    TopologyObject& nic = p.topology.objects.emplace_back();
    nic.id = key.from;
    nic.kind = ObjectKind::nic;
    nic.parent = "cpu";
    nic.name = fmt::format("eth{}", i);
  }
  return p;
}

TEST(SeveralPorts, APlansNetworkNamesThemAndTheSimulationTakesWhatIsPredicted) {
  RECKON_NEEDS_SIMULATOR();
  const Profile profile = with_ports({0.8e9, 0.8e9, 0.8e9, 0.8e9}, 3.2e9);
  PlanOptions options{
      .strategy = "ps_noncolocated", .part_bytes = 64U << 20U, .cutting = Cutting::tensors};
  // One tensor that is not cut has one lane and one port: eight workers' bytes, there and back.
  const Workload tensor = workload({{"one", 16U << 20U, DType::fp32}});
  const Plan plan = plan_for(profile, tensor, 8, 1, options, 4);
  PlanNetwork network = network_of(plan, profile);
  const auto named = [&](const std::string& name) {
    return std::find(network.stations.begin(), network.stations.end(), name) -
           network.stations.begin();
  };
  ASSERT_EQ(network.stations.size(), network.network.station_bytes_per_s.size());
  const auto& way = network.network.path(3, 0, 8);
  EXPECT_EQ(way.front(), named("rank 0 out"));
  EXPECT_EQ(way.back(), named("rank 8 eth3 in"));
  EXPECT_EQ(network.network.path(7, 8, 0).front(), named("rank 8 eth3 out"));
  const SimNetwork links{network.network, network.stations, network.network.write_overhead_s,
                         network.cost};
  const double expected = 2 * 8 * static_cast<double>(tensor.bytes()) / 0.8e9;
  EXPECT_NEAR(plan.prediction.mid_seconds, expected, k_within * expected);
  EXPECT_NEAR(simulated(lower(plan), links).seconds, expected, k_within * expected);
}

} // namespace
} // namespace reckon
