// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"
#include "documents/plan.hpp"
#include "simulate/build.hpp"
#include "simulate/engine.hpp"
#include "simulate/equal_shares.hpp"
#include "support/equal_parts.hpp"
#include "support/schedules.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace reckon::test {

/// Skips the test where reckon-sim is not built.
#ifdef RECKON_SIM
inline constexpr const char* k_simulator = RECKON_SIM;
#define RECKON_NEEDS_SIMULATOR() static_cast<void>(0)
#else
inline constexpr const char* k_simulator = "";
#define RECKON_NEEDS_SIMULATOR()                                                                   \
  GTEST_SKIP() << "reckon-sim is not built: SimGrid was not found (libsimgrid-dev)"
#endif

/// Ranks with a port each way: station 2 r is rank r's egress, 2 r + 1 its ingress.
inline SimNetwork ports(std::size_t ranks, double bytes_per_s, double latency_s = 0) {
  SimNetwork network;
  add_ports(network.stations, ranks, bytes_per_s);
  network.stations.latency_s = latency_s;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    network.names.push_back("rank " + std::to_string(rank) + " out");
    network.names.push_back("rank " + std::to_string(rank) + " in");
  }
  network.op_seconds = no_cost;
  return network;
}

/// Ranks with several ports, each way: port p of rank r has `rates[r][p]`, lane l takes port l
/// modulo their number. Behind ports() come rank by rank and port by port one station out and one
/// in. `together`: what all ports of a rank carry, a station as well.
inline SimNetwork several_ports(const std::vector<std::vector<double>>& rates,
                                const std::vector<double>& together = {}, double latency_s = 0) {
  SimNetwork network = ports(rates.size(), 1e9, latency_s);
  std::vector<std::uint32_t> first; // by rank: out of its first port
  std::size_t lanes = 1;
  for (std::size_t r = 0; r < rates.size(); ++r) {
    first.push_back(static_cast<std::uint32_t>(network.names.size()));
    lanes = std::lcm(lanes, rates[r].size());
    for (std::size_t p = 0; p < rates[r].size(); ++p) {
      for (const char* way : {"out", "in"}) {
        network.stations.station_bytes_per_s.push_back(rates[r][p]);
        network.names.push_back("rank " + std::to_string(r) + " eth" + std::to_string(p) + " " +
                                way);
      }
    }
    if (!together.empty()) {
      network.stations.station_bytes_per_s[2 * r] = together[r];
      network.stations.station_bytes_per_s[2 * r + 1] = together[r];
    }
  }
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    StationPaths& paths = network.stations.lane_paths.emplace_back(network.stations.paths);
    const auto port = [&](std::uint32_t rank) {
      return first[rank] + 2 * (lane % static_cast<std::uint32_t>(rates[rank].size()));
    };
    for (std::uint32_t from = 0; from < rates.size(); ++from) {
      for (std::uint32_t to = 0; to < rates.size(); ++to) {
        if (from != to && together.empty()) {
          paths[from][to] = {port(from), port(to) + 1};
        } else if (from != to) {
          paths[from][to] = {port(from), 2 * from, 2 * to + 1, port(to) + 1};
        }
      }
    }
  }
  return network;
}

/// A plan of equal parts over ranks with one lane; part p is summed by `server_of(p)`.
inline Plan plan_of(const std::string& strategy, std::size_t workers, std::size_t servers,
                    std::uint64_t parts, std::uint64_t part_bytes, std::uint64_t window,
                    const std::function<std::uint64_t(std::uint64_t)>& server_of) {
  Plan plan;
  plan.strategy = strategy;
  for (std::size_t r = 0; r < workers + servers; ++r) {
    PlanRank rank{.machine = "m", .worker = r < workers, .server = true};
    plan.ranks.push_back(rank);
  }
  cut_equally(plan, parts, part_bytes, window);
  for (std::uint64_t p = 0; p < parts; ++p) {
    plan.parts.server.push_back(server_of(p));
    plan.parts.lane.push_back(0);
  }
  return plan;
}

/// The plan with its parts on so many lanes in turn.
inline Plan on_lanes(Plan plan, std::uint64_t lanes) {
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    plan.parts.lane[p] = p % lanes;
  }
  for (PlanRank& rank : plan.ranks) {
    rank.lanes = static_cast<int>(lanes);
  }
  return plan;
}

inline SimResult simulated(const SimGraph& graph) {
  return simulate(graph, k_simulator, [](std::uint64_t) {});
}

/// By equal shares where the stations are apart, and then also on SimGrid, to times so much of all
/// apart at most.
inline SimResult simulated_twice(SimGraph graph, double within) {
  SimResult result = simulated(graph);
  EXPECT_EQ(result.engine == "equal shares", stations_are_apart(graph));
  if (stations_are_apart(graph)) {
    graph.simgrid = true;
    const SimResult on_simgrid = simulated(graph);
    EXPECT_EQ(on_simgrid.engine.rfind("SimGrid", 0), 0U);
    for (std::size_t lane = 0; lane < result.lane_seconds.size(); ++lane) {
      EXPECT_NEAR(result.lane_seconds[lane], on_simgrid.lane_seconds[lane], within * result.seconds)
          << "lane " << lane;
    }
  }
  return result;
}

inline SimResult simulated(const Schedule& schedule, const SimNetwork& network,
                           const Scenario& scenario = {}) {
  return simulated_twice(build_graph(schedule, network, scenario), 1e-3);
}

} // namespace reckon::test
