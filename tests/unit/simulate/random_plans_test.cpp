// SPDX-License-Identifier: Apache-2.0
//
// Random plans simulated beside the planner's play, which have in common the schedule and the
// stations. A play serves a station's writes in turn, the simulation shares it, so that single
// plans may differ; over many plans the differences must go either way and stay small.

#include "fixtures.hpp"
#include "strategies/lower.hpp"
#include "strategies/play.hpp"
#include "support/cases.hpp"
#include "support/random_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace reckon {
namespace {

using namespace test;

constexpr std::uint64_t k_seed = 20261122;
constexpr int k_plans = support::cases(200);

struct Job {
  Schedule schedule;
  SimNetwork network;
  std::string text;
};

/// 2 to 6 workers, up to 3 servers, ports within a factor of 4, up to 60 parts, any window; sums
/// take up to as long as a port's bytes.
Job random_job(Random& random, const std::string& strategy) {
  const std::size_t workers = random.whole(2, 6);
  const bool shared = strategy == "ring" || strategy == "ps_colocated";
  const std::size_t servers = shared ? 0 : random.whole(1, 3);
  const std::uint64_t parts = random.whole(1, 60), window = random.whole(1, parts);
  const std::uint64_t part_bytes = 4 * random.whole(1'000, 100'000);
  const std::size_t first = strategy == "ps_noncolocated" ? workers : 0;
  Job job;
  job.schedule =
      lower(plan_of(strategy, workers, servers, parts, part_bytes, window,
                    [&](std::uint64_t) { return random.whole(first, workers + servers - 1); }));
  job.network = ports(workers + servers, 1e9, random.uniform(0, 1e-3));
  for (double& rate : job.network.stations.station_bytes_per_s) {
    rate = random.uniform(0.5e9, 2e9);
  }
  const double sums = random.whole(0, 1) == 0 ? 0 : random.uniform(2e9, 20e9);
  job.network.op_seconds = [sums](std::size_t, const Op& op) {
    return sums > 0 && op.kind == OpKind::reduce ? static_cast<double>(op.bytes) / sums : 0.0;
  };
  // Pieces so short that how they fill the stations is not seen.
  job.network.stations.quantum_bytes = std::max<std::uint64_t>(1, part_bytes / 100);
  job.text = fmt::format("{}, {} workers, {} servers, {} parts of {} B, {} under way", strategy,
                         workers, servers, parts, part_bytes, window);
  return job;
}

/// 2 to 5 workers and 1 or 2 servers with 1 to 4 ports each, of rates within a factor of 4 each way
/// and, if `bound_together`, with less than that together; a lane or two for each. At least two
/// parts a lane are under way: of single ones those that share a port alike are pushed together and
/// then taken back together, up to twice as long as in turn.
Job random_ports_job(Random& random, bool bound_together) {
  const std::size_t workers = random.whole(2, 5), servers = random.whole(1, 2);
  std::vector<std::vector<double>> rates;
  std::vector<double> together;
  std::uint64_t lanes = random.whole(1, 2);
  for (std::size_t r = 0; r < workers + servers; ++r) {
    rates.emplace_back(random.whole(1, 4), 1e9);
    lanes = std::lcm(lanes, rates.back().size());
    if (bound_together) {
      together.push_back(static_cast<double>(rates.back().size()) * random.uniform(0.3e9, 0.8e9));
    }
  }
  Job job;
  job.network = several_ports(rates, together, random.uniform(0, 1e-3));
  std::vector<double>& rate = job.network.stations.station_bytes_per_s;
  for (std::size_t s = 2 * rates.size(); s < rate.size(); ++s) {
    rate[s] = random.uniform(0.5e9, 2e9);
  }
  const std::uint64_t parts = lanes * random.whole(2, 6), window = random.whole(2, parts / lanes);
  const std::uint64_t part_bytes = 4 * random.whole(1'000, 100'000);
  job.schedule = lower(
      on_lanes(plan_of("ps_noncolocated", workers, servers, parts, part_bytes, window,
                       [&](std::uint64_t) { return random.whole(workers, workers + servers - 1); }),
               lanes));
  job.network.stations.quantum_bytes = std::max<std::uint64_t>(1, part_bytes / 100);
  job.text = fmt::format("{} workers, {} servers, {} lanes, {} parts of {} B, {} a lane under way",
                         workers, servers, lanes, parts, part_bytes, window);
  return job;
}

/// Seconds of the busiest station: no discipline is faster.
double busiest(const Job& job) {
  const StationNetwork& stations = job.network.stations;
  std::vector<double> seconds(stations.station_bytes_per_s.size(), 0);
  for (std::size_t rank = 0; rank < job.schedule.ranks.size(); ++rank) {
    for (std::size_t lane = 0; lane < job.schedule.ranks[rank].lanes.size(); ++lane) {
      for (const Op& op : job.schedule.ranks[rank].lanes[lane].ops()) {
        if (op.kind == OpKind::write) {
          for (const std::uint32_t s : stations.path(lane, rank, op.peer)) {
            seconds[s] += static_cast<double>(op.bytes) / stations.station_bytes_per_s[s];
          }
        }
      }
    }
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

/// Simulated to played time of random plans of one kind, in ascending order.
template <class Draw>
std::vector<double> ratios_of(std::uint64_t seed, int plans, const Draw& draw) {
  Random random(seed);
  std::vector<double> ratios;
  for (int i = 0; i < plans; ++i) {
    const Job job = draw(random);
    SCOPED_TRACE(fmt::format("{} (seed {}, plan {})", job.text, seed, i));
    PlayNetwork network;
    static_cast<StationNetwork&>(network) = job.network.stations;
    const double played_s = play(job.schedule, network, job.network.op_seconds).total_seconds;
    const double simulated_s = simulated(build_graph(job.schedule, job.network)).seconds;
    EXPECT_GE(simulated_s, busiest(job) * (1 - 1e-6));
    EXPECT_GE(played_s, busiest(job) * (1 - 1e-6));
    ratios.push_back(simulated_s / played_s);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

/// How far the ratios of a kind of plan may be from 1: their mean, a plan in ten to either side,
/// and any of them.
struct Within {
  double mean, tenths, all;
};

void expect_within(const std::string& kind, const std::vector<double>& ratios,
                   const Within& within) {
  SCOPED_TRACE(kind);
  const std::size_t tenth = ratios.size() / 10;
  const double mean =
      std::accumulate(ratios.begin(), ratios.end(), 0.0) / static_cast<double>(ratios.size());
  const std::string text = fmt::format(
      "{}: simulated to played {:.4f} to {:.4f}, tenths {:.4f} and {:.4f}, mean {:.4f}\n", kind,
      ratios.front(), ratios.back(), ratios[tenth], ratios[ratios.size() - 1 - tenth], mean);
  if (!support::k_sanitized) { // of a few plans these say little
    EXPECT_NEAR(mean, 1, within.mean) << text;
    EXPECT_GT(ratios[tenth], 1 - within.tenths) << text;
    EXPECT_LT(ratios[ratios.size() - 1 - tenth], 1 + within.tenths) << text;
  }
  EXPECT_GT(ratios.front(), 1 - within.all) << text;
  EXPECT_LT(ratios.back(), 1 + within.all) << text;
  fmt::print("{}", text);
}

TEST(RandomPlans, TakeAboutAsLongAsPlayedAndARingJustAsLong) {
  RECKON_NEEDS_SIMULATOR();
  struct Kind {
    std::string strategy;
    Within within;
  };
  for (const Kind& kind : {Kind{"ring", {0.001, 0.002, 0.002}}, // nobody shares a port
                           {"ps_colocated", {0.015, 0.04, 0.13}},
                           {"ps_noncolocated", {0.04, 0.13, 0.2}},
                           {"byteps_split", {0.015, 0.06, 0.14}}}) {
    expect_within(kind.strategy,
                  ratios_of(k_seed, k_plans / 4,
                            [&](Random& random) { return random_job(random, kind.strategy); }),
                  kind.within);
  }
}

TEST(RandomPlans, OverSeveralPortsOfUnlikeSpeedTakeAboutAsLongAsPlayed) {
  RECKON_NEEDS_SIMULATOR();
  const auto ratios = [](bool bound_together) {
    return ratios_of(k_seed + 1, k_plans / 2,
                     [&](Random& random) { return random_ports_job(random, bound_together); });
  };
  expect_within("ports of their own", ratios(false), {0.06, 0.16, 0.3});
  // What the ports carry together serves in turn what comes, most of it from the fast ports, or
  // all lanes alike: the slow ports' lanes are done at other times.
  expect_within("ports that are bound together", ratios(true), {0.08, 0.24, 0.35});
}

TEST(RandomPlans, HaveTheSameTimesByEqualSharesAndOnSimGrid) {
  RECKON_NEEDS_SIMULATOR();
  // Writes of unlike bytes: of what becomes ready at the same time in two lanes either may be
  // first, which changes a plan's time by up to 4 %.
  Random random(k_seed + 2);
  for (int i = 0; i < k_plans; ++i) {
    const Job job = i % 3 == 0
                        ? random_ports_job(random, i % 2 == 0)
                        : random_job(random, i % 3 == 1 ? "ps_noncolocated" : "byteps_split");
    SCOPED_TRACE(fmt::format("{} (seed {}, plan {})", job.text, k_seed + 2, i));
    SimGraph graph = build_graph(job.schedule, job.network);
    graph.precision_s = 1e-15;
    for (SimGraph::Op& op : graph.ops) {
      op.amount *= 1 + random.uniform(0, 1e-3);
    }
    simulated_twice(graph, 1e-5); // SimGrid counts in 1/1024 bytes
  }
}

} // namespace
} // namespace reckon
