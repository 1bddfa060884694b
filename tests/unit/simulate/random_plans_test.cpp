// SPDX-License-Identifier: Apache-2.0
//
// Random plans on SimGrid beside the planner's play: two implementations that have in common the
// schedule and the stations. A play serves a station's writes in turn, SimGrid shares it.

#include "fixtures.hpp"
#include "strategies/lower.hpp"
#include "strategies/play.hpp"
#include "support/cases.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <numeric>
#include <random>
#include <utility>

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
Job random_job(std::mt19937_64& random, const std::string& strategy) {
  const auto whole = [&](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  const auto real = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  const std::size_t workers = whole(2, 6);
  const bool shared = strategy == "ring" || strategy == "ps_colocated";
  const std::size_t servers = shared ? 0 : whole(1, 3);
  const std::uint64_t parts = whole(1, 60), window = whole(1, parts);
  const std::uint64_t part_bytes = 4 * whole(1'000, 100'000);
  const std::size_t first = strategy == "ps_noncolocated" ? workers : 0;
  Plan plan = plan_of(strategy, workers, servers, parts, part_bytes, window,
                      [&](std::uint64_t) { return whole(first, workers + servers - 1); });
  Job job;
  job.schedule = lower(plan);
  job.network = ports(workers + servers, 1e9, real(0, 1e-3));
  for (double& rate : job.network.stations.station_bytes_per_s) {
    rate = real(0.5e9, 2e9);
  }
  const double sums = whole(0, 1) == 0 ? 0 : real(2e9, 20e9);
  job.network.op_seconds = [sums](std::size_t, const Op& op) {
    return sums > 0 && op.kind == OpKind::reduce ? static_cast<double>(op.bytes) / sums : 0.0;
  };
  // Pieces so short that how they fill the stations is not seen.
  job.network.stations.quantum_bytes = std::max<std::uint64_t>(1, part_bytes / 100);
  job.text = strategy + ", " + std::to_string(workers) + " workers, " + std::to_string(servers) +
             " servers, " + std::to_string(parts) + " parts of " + std::to_string(part_bytes) +
             " B, " + std::to_string(window) + " under way";
  return job;
}

double played(const Job& job) {
  PlayNetwork network;
  static_cast<StationNetwork&>(network) = job.network.stations;
  return play(job.schedule, network, job.network.op_seconds).total_seconds;
}

/// 2 to 5 workers and 1 or 2 servers with 1 to 4 ports each, of rates within a factor of 4 each way
/// and half of the time with less than that together; a lane or two for each. At least two parts a
/// lane are under way: of single ones those that share a port alike are pushed together and then
/// taken back together, up to twice as long as in turn.
struct PortsJob : Job {
  std::vector<std::size_t> ports; ///< by rank
  bool bound_together = false;
};

PortsJob random_ports_job(std::mt19937_64& random) {
  const auto whole = [&](std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
  };
  const auto real = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  const std::size_t workers = whole(2, 5), servers = whole(1, 2);
  PortsJob job;
  std::vector<std::vector<double>> rates;
  std::vector<double> together;
  job.bound_together = whole(0, 1) == 1;
  std::uint64_t lanes = whole(1, 2);
  for (std::size_t r = 0; r < workers + servers; ++r) {
    job.ports.push_back(whole(1, 4));
    rates.emplace_back(job.ports.back(), 1e9);
    lanes = std::lcm(lanes, job.ports.back());
    if (job.bound_together) {
      together.push_back(static_cast<double>(job.ports.back()) * real(0.3e9, 0.8e9));
    }
  }
  job.network = several_ports(rates, together, real(0, 1e-3));
  std::vector<double>& rate = job.network.stations.station_bytes_per_s;
  for (std::size_t s = 2 * rates.size(); s < rate.size(); ++s) {
    rate[s] = real(0.5e9, 2e9);
  }
  const std::uint64_t parts = lanes * whole(2, 6), window = whole(2, parts / lanes);
  const std::uint64_t part_bytes = 4 * whole(1'000, 100'000);
  job.schedule =
      lower(on_lanes(plan_of("ps_noncolocated", workers, servers, parts, part_bytes, window,
                             [&](std::uint64_t) { return whole(workers, workers + servers - 1); }),
                     lanes));
  job.network.stations.quantum_bytes = std::max<std::uint64_t>(1, part_bytes / 100);
  job.text = std::to_string(workers) + " workers, " + std::to_string(servers) + " servers, " +
             std::to_string(lanes) + " lanes, " + std::to_string(parts) + " parts of " +
             std::to_string(part_bytes) + " B, " + std::to_string(window) + " a lane under way" +
             (job.bound_together ? ", bound together" : "");
  return job;
}

/// Seconds of the busiest port, of which lane l of rank r has number l modulo its ports, and of
/// what a rank's ports carry together: no discipline is faster.
double busiest_port(const PortsJob& job) {
  const std::vector<double>& rate = job.network.stations.station_bytes_per_s;
  std::vector<double> seconds(rate.size(), 0);
  const auto carry = [&](std::size_t station, std::uint64_t bytes) {
    seconds[station] += static_cast<double>(bytes) / rate[station];
  };
  const auto port = [&](std::size_t rank, std::size_t lane) {
    const std::size_t before = std::accumulate(
        job.ports.begin(), job.ports.begin() + static_cast<std::ptrdiff_t>(rank), job.ports.size());
    return 2 * (before + lane % job.ports[rank]);
  };
  for (std::size_t rank = 0; rank < job.schedule.ranks.size(); ++rank) {
    for (std::size_t lane = 0; lane < job.schedule.ranks[rank].lanes.size(); ++lane) {
      for (const Op& op : job.schedule.ranks[rank].lanes[lane].ops()) {
        if (op.kind == OpKind::write) {
          carry(port(rank, lane), op.bytes);
          carry(port(op.peer, lane) + 1, op.bytes);
          if (job.bound_together) {
            carry(2 * rank, op.bytes);
            carry(2 * op.peer + 1, op.bytes);
          }
        }
      }
    }
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

/// Seconds of the busiest port: no discipline is faster.
double busiest(const Job& job) {
  std::vector<double> seconds(job.network.stations.station_bytes_per_s.size(), 0);
  for (std::size_t rank = 0; rank < job.schedule.ranks.size(); ++rank) {
    for (const Op& op : job.schedule.ranks[rank].lanes[0].ops()) {
      if (op.kind == OpKind::write) {
        for (const std::uint32_t s : job.network.stations.paths[rank][op.peer]) {
          seconds[s] += static_cast<double>(op.bytes) / job.network.stations.station_bytes_per_s[s];
        }
      }
    }
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

TEST(RandomPlans, TakeAboutAsLongAsPlayedAndARingJustAsLong) {
  RECKON_NEEDS_SIMULATOR();
  std::mt19937_64 random(k_seed);
  const std::vector<std::string> strategies{"ring", "ps_colocated", "ps_noncolocated",
                                            "byteps_split"};
  double least = 1e9, most = 0;
  for (int i = 0; i < k_plans; ++i) {
    const std::string& strategy = strategies[static_cast<std::size_t>(i) % strategies.size()];
    const Job job = random_job(random, strategy);
    const double play_s = played(job), sim_s = simulated(job.schedule, job.network).seconds;
    const double ratio = sim_s / play_s;
    SCOPED_TRACE(job.text + " (seed " + std::to_string(k_seed) + ", plan " + std::to_string(i) +
                 ")");
    EXPECT_GE(sim_s, busiest(job) * (1 - 1e-6));
    EXPECT_GE(play_s, busiest(job) * (1 - 1e-6));
    if (strategy == "ring") {
      EXPECT_NEAR(ratio, 1, 0.012); // nobody shares a port; a piece is a hundredth of a part
    } else {
      EXPECT_GT(ratio, 0.7);
      EXPECT_LT(ratio, 1.3);
      least = std::min(least, ratio);
      most = std::max(most, ratio);
    }
  }
  std::cout << "simulated to played, where ports are shared: " << least << " to " << most << '\n';
}

TEST(RandomPlans, OverSeveralPortsOfUnlikeSpeedTakeAboutAsLongAsPlayed) {
  RECKON_NEEDS_SIMULATOR();
  std::mt19937_64 random(k_seed + 1);
  struct Range {
    double least = 1e9, most = 0;
  };
  std::array<Range, 2> ranges; // [bound together]
  for (int i = 0; i < k_plans; ++i) {
    const PortsJob job = random_ports_job(random);
    const double play_s = played(job), sim_s = simulated(job.schedule, job.network).seconds;
    SCOPED_TRACE(job.text + " (seed " + std::to_string(k_seed + 1) + ", plan " + std::to_string(i) +
                 ")");
    const double bound = busiest_port(job);
    EXPECT_GE(sim_s, bound * (1 - 1e-6));
    EXPECT_GE(play_s, bound * (1 - 1e-6));
    // What the ports carry together serves in turn what comes, most of it from the fast ports, or
    // all lanes alike: the slow ports' lanes are done at other times.
    const double ratio = sim_s / play_s;
    EXPECT_GT(ratio, job.bound_together ? 0.6 : 0.75);
    EXPECT_LT(ratio, job.bound_together ? 1.5 : 1.25);
    Range& range = ranges[job.bound_together ? 1 : 0];
    range.least = std::min(range.least, ratio);
    range.most = std::max(range.most, ratio);
  }
  std::cout << "simulated to played, over several ports: " << ranges[0].least << " to "
            << ranges[0].most << ", bound together: " << ranges[1].least << " to " << ranges[1].most
            << '\n';
}

} // namespace
} // namespace reckon
