// SPDX-License-Identifier: Apache-2.0
#include "equations/split.hpp"

#include "core/error.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

namespace reckon {
namespace {

// Results are a few additions and divisions away from the expected value: some 10 roundings of
// 1e-16.
constexpr double k_rounding = 1e-13;

#define EXPECT_CLOSE(actual, expected)                                                             \
  EXPECT_NEAR(actual, expected, k_rounding* std::max(1.0, std::abs(static_cast<double>(expected))))

std::vector<double> times(std::size_t count, double value) {
  return std::vector<double>(count, value);
}

/// What crosses the ports, counted flow by flow: every worker pushes every service's share to it
/// and gets the sum back; only flows between different machines cross ports. Nothing of equation 5
/// is used.
StarTraffic count_flows(const Star& star, const StarShares& shares) {
  const std::size_t n = star.worker_bytes_per_s.size();
  const std::size_t k = star.server_bytes_per_s.size();
  std::vector<double> sent(n + k, 0.0);
  std::vector<double> received(n + k, 0.0);
  for (std::size_t worker = 0; worker < n; ++worker) {
    for (std::size_t service = 0; service < n + k; ++service) {
      if (service == worker) {
        continue;
      }
      const double share =
          service < n ? shares.worker_bytes[service] : shares.server_bytes[service - n];
      sent[worker] += share;
      received[service] += share;
      sent[service] += share;
      received[worker] += share;
    }
  }
  StarTraffic out;
  for (std::size_t i = 0; i < n + k; ++i) {
    EXPECT_NEAR(sent[i], received[i], 1e-9 * star.model_bytes);
    (i < n ? out.worker_port_bytes : out.server_port_bytes).push_back(sent[i]);
    const double bandwidth = i < n ? star.worker_bytes_per_s[i] : star.server_bytes_per_s[i - n];
    out.time_s = std::max(out.time_s, sent[i] / bandwidth);
  }
  return out;
}

TEST(RingAllreduce, EqualPortsFollowSection22) {
  // 2(n-1)/n * M/B = 2 * 3/4 * 100/10.
  EXPECT_CLOSE(ring_allreduce_s(100, times(4, 10)), 15.0);
  EXPECT_EQ(ring_allreduce_s(100, times(1, 10)), 0.0);
}

TEST(RingAllreduce, TheSlowestPortSetsThePace) {
  EXPECT_CLOSE(ring_allreduce_s(100, {10, 10, 5, 10}), 30.0);
}

TEST(ParameterServer, TheServersLimitWhenTheyAreFew) {
  // n M / (k B) = 8 * 100 / (2 * 10) = 40 > M / B = 10.
  const auto split = solve_parameter_server({100, times(8, 10), times(2, 10)});
  ASSERT_TRUE(split);
  EXPECT_CLOSE(split->time_s, 40.0);
  EXPECT_CLOSE(split->traffic.time_s, 40.0);
  EXPECT_EQ(split->limit, StarLimit::servers);
  EXPECT_EQ(split->shares.server_bytes, times(2, 50));
  EXPECT_EQ(split->shares.worker_bytes, times(8, 0));
  // d/dS of n M / sum S = -n M / (sum S)^2 = -800 / 400 for one, twice that for both.
  EXPECT_CLOSE(split->server_gain, -2.0);
  EXPECT_CLOSE(split->joint_gain, -4.0);
  EXPECT_EQ(split->worker_gain, 0.0);
}

TEST(ParameterServer, TheWorkersLimitWhenServersAreMany) {
  const auto split = solve_parameter_server({100, {10, 20}, times(3, 10)});
  ASSERT_TRUE(split);
  EXPECT_CLOSE(split->time_s, 10.0);
  EXPECT_EQ(split->limit, StarLimit::slowest_workers);
  EXPECT_EQ(split->limiting_workers, std::vector<std::size_t>{0});
  EXPECT_CLOSE(split->worker_gain, -1.0); // -M / B^2
}

TEST(ParameterServer, UnequalServersShareInProportionToTheirPorts) {
  // n M / sum S = 4 * 100 / 20; shares 3 : 1.
  const auto split = solve_parameter_server({100, times(4, 10), {15, 5}});
  ASSERT_TRUE(split);
  EXPECT_CLOSE(split->time_s, 20.0);
  EXPECT_CLOSE(split->shares.server_bytes[0], 75.0);
  EXPECT_CLOSE(split->shares.server_bytes[1], 25.0);
}

TEST(ParameterServer, WithoutServersThereIsNone) {
  EXPECT_FALSE(solve_parameter_server({100, times(4, 10), {}}));
}

TEST(ColocatedParameterServer, CostsWhatAllreduceCosts) {
  const StarSplit split = solve_colocated_parameter_server({100, times(4, 10), {}});
  EXPECT_CLOSE(split.time_s, 15.0);
  EXPECT_EQ(split.shares.worker_bytes, times(4, 25));
  EXPECT_EQ(split.limiting_workers.size(), 4U);
  EXPECT_EQ(split.worker_gain, 0.0); // one of four equally slow workers changes nothing
  EXPECT_CLOSE(split.joint_gain, -1.5);
}

TEST(ColocatedParameterServer, TheSlowestPortSetsThePaceAndServersAreIgnored) {
  const StarSplit split = solve_colocated_parameter_server({100, {10, 10, 5, 10}, {40}});
  EXPECT_CLOSE(split.time_s, 30.0);
  EXPECT_EQ(split.limiting_workers, std::vector<std::size_t>{2});
  EXPECT_CLOSE(split.worker_gain, -6.0);
  EXPECT_TRUE(split.shares.server_bytes.empty());
}

TEST(ParameterServerSlower, IsSoUpToMoreServersThanThePapersHalf) {
  // Error E6: slower if 2k(n-1) < n^2. n = 3, k = 2 is more than n/2 and yet 3/2 M/B against 4/3.
  for (std::uint64_t n = 1; n <= 40; ++n) {
    for (std::uint64_t k = 1; k <= 45; ++k) {
      const double ps = solve_parameter_server({1, times(n, 1), times(k, 1)})->time_s;
      const double ring = ring_allreduce_s(1, times(n, 1));
      EXPECT_EQ(2 * k * (n - 1) < n * n, ps > ring * (1 + 1e-12)) << n << " + " << k;
    }
  }
}

TEST(ParameterServer, IsOptimalWithAtLeastAsManyServersAsWorkersOnly) {
  for (std::uint64_t n = 2; n <= 32; ++n) {
    for (std::uint64_t k = 1; k <= 2 * n; ++k) {
      const double best = solve_equal_split(n, k, 1, 1, 1).time_s;
      const double ps = solve_parameter_server({1, times(n, 1), times(k, 1)})->time_s;
      EXPECT_EQ(k >= n, ps <= best * (1 + 1e-12)) << n << " + " << k;
    }
  }
}

TEST(EqualSplit, Figure12sOptimalLine) {
  // Goodput M/t = (n^2 + kn - 2k) B / (2n(n-1)) = (64 + 6k) * 90 / 112 Gbit/s for n = 8.
  const double line[] = {51.43, 56.25, 61.07, 65.89, 70.71, 75.54, 80.36, 85.18, 90.0};
  const double bandwidth = 90e9 / 8;
  for (std::uint64_t k = 0; k <= 8; ++k) {
    const EqualSplit split = solve_equal_split(8, k, 1e9, bandwidth, bandwidth);
    EXPECT_NEAR(1e9 / split.time_s * 8 / 1e9, line[k], 0.005) << k; // printed with two decimals
  }
}

TEST(EqualSplit, SharesAndTimesOfStarsWorkedOutByHand) {
  struct Case {
    const char* what;
    std::uint64_t workers, servers;
    double bytes, worker_rate, server_rate; ///< rates in bytes per second
    double time_s, worker_bytes, server_bytes;
    StarLimit limit;
  };
  using enum StarLimit;
  for (const Case& c : {
           // Error E1: without the factor n, n = 8 and k = 4 would give -3/32 M and 7/16 M. D = 64
           // +
           // 32 - 8 = 88.
           Case{"equation 4 as printed is not followed", 8, 4, 1, 1, 1, 112.0 / 88, 4.0 / 88,
                14.0 / 88, all_ports},
           {"no servers is all-reduce, and their bandwidth is not looked at", 8, 0, 100, 10, 0,
            17.5, 12.5, 0, all_ports}, // 2 * 7/8 * 100 / 10
           {"as many servers as workers reach the ports' limit", 8, 8, 100, 10, 10, 10, 0, 12.5,
            slowest_workers},
           // Error E9: equation 2 of the paper gives (n-k)/D < 0 here.
           {"more servers than workers never make a share negative", 4, 10, 100, 10, 10, 10, 0, 10,
            slowest_workers},
           // Error E8: D = 4 for every k, so the time is M/B; shares M/2 a server and (2-k)/4 M a
           // worker.
           {"two workers gain nothing from no server", 2, 0, 100, 10, 10, 10, 50, 0,
            slowest_workers},
           {"two workers gain nothing from a server", 2, 1, 100, 10, 10, 10, 25, 50,
            slowest_workers},
           {"two workers gain nothing from two servers", 2, 2, 100, 10, 10, 10, 0, 50,
            slowest_workers},
           {"two workers gain nothing from four servers", 2, 4, 100, 10, 10, 10, 0, 25,
            slowest_workers},
           {"one worker sends nothing", 1, 0, 100, 10, 10, 0, 100, 0, nothing},
           {"one worker sends nothing, though D is zero", 1, 1, 100, 10, 10, 0, 100, 0, nothing},
           {"one worker sends nothing to three servers", 1, 3, 100, 10, 10, 0, 100, 0, nothing},
           {"no bytes take no time", 4, 2, 0, 10, 10, 0, 0, 0, nothing},
       }) {
    SCOPED_TRACE(c.what);
    const EqualSplit split =
        solve_equal_split(c.workers, c.servers, c.bytes, c.worker_rate, c.server_rate);
    EXPECT_CLOSE(split.time_s, c.time_s);
    EXPECT_CLOSE(split.worker_share_bytes, c.worker_bytes);
    EXPECT_CLOSE(split.server_share_bytes, c.server_bytes);
    EXPECT_EQ(split.limit, c.limit);
    if (c.limit == all_ports && c.servers > 0) { // all ports are busy equally long
      EXPECT_CLOSE(split.worker_port_bytes, split.server_port_bytes);
    }
  }
}

TEST(EqualSplit, OfAStarIsTheGeneralSolutionWithoutRounding) {
  const StarSplit split = solve_equal_star({100, times(4, 10), times(10, 10)});
  EXPECT_EQ(split.shares.worker_bytes, times(4, 0));
  EXPECT_EQ(split.shares.server_bytes, times(10, 10));
  EXPECT_EQ(split.traffic.worker_port_bytes, times(4, 100));
  EXPECT_EQ(split.traffic.server_port_bytes, times(10, 40));
  EXPECT_EQ(split.time_s, 10.0);
  EXPECT_EQ(split.limit, StarLimit::slowest_workers);
  EXPECT_EQ(split.limiting_workers.size(), 4U);
}

TEST(EqualSplit, ServersOfAQuarterOfTheBandwidthCountAQuarter) {
  // Footnote 4: four times the machines at 25 % give the time of the fast ones.
  const EqualSplit slow = solve_equal_split(8, 16, 100, 10, 2.5);
  const EqualSplit fast = solve_equal_split(8, 4, 100, 10, 10);
  EXPECT_CLOSE(slow.time_s, fast.time_s);
  EXPECT_CLOSE(slow.worker_share_bytes, fast.worker_share_bytes);
  EXPECT_CLOSE(slow.server_share_bytes, fast.server_share_bytes / 4);
}

TEST(EqualSplit, IsWhatTheGeneralSolverGives) {
  for (std::size_t n = 1; n <= 24; ++n) {
    for (std::size_t k = 0; k <= 2 * n + 1; ++k) {
      for (const double server : {4.0, 10.0, 23.0}) {
        const EqualSplit equal = solve_equal_split(n, k, 1000, 10, server);
        const StarSplit star = solve_star_split({1000, times(n, 10), times(k, server)});
        SCOPED_TRACE(testing::Message() << n << " + " << k << " at " << server);
        EXPECT_CLOSE(star.time_s, equal.time_s);
        EXPECT_CLOSE(star.traffic.time_s, equal.time_s);
        EXPECT_EQ(star.limit, equal.limit);
        for (std::size_t i = 0; i < n; ++i) {
          // (tB - M) / (n-2) cancels: the error is that of M, not of the share.
          EXPECT_NEAR(star.shares.worker_bytes[i], equal.worker_share_bytes, 1e-10);
          EXPECT_NEAR(star.traffic.worker_port_bytes[i], equal.worker_port_bytes, 1e-9);
        }
        for (std::size_t j = 0; j < k; ++j) {
          EXPECT_NEAR(star.shares.server_bytes[j], equal.server_share_bytes, 1e-10);
          EXPECT_NEAR(star.traffic.server_port_bytes[j], equal.server_port_bytes, 1e-9);
        }
      }
    }
  }
}

TEST(Traffic, IsWhatTheFlowsBetweenMachinesAddUpTo) {
  const Star star{100, {10, 20, 5, 8}, {7, 3}};
  const StarShares shares{{10, 30, 0, 5}, {40, 15}};
  const StarTraffic formula = traffic_of(star, shares);
  const StarTraffic counted = count_flows(star, shares);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_CLOSE(formula.worker_port_bytes[i], counted.worker_port_bytes[i]);
  }
  for (std::size_t j = 0; j < 2; ++j) {
    EXPECT_CLOSE(formula.server_port_bytes[j], counted.server_port_bytes[j]);
  }
  EXPECT_CLOSE(formula.time_s, counted.time_s);
  EXPECT_CLOSE(formula.worker_port_bytes[1], 100 + 2 * 30.0);
  EXPECT_CLOSE(formula.server_port_bytes[0], 160.0);
}

TEST(Traffic, OfOneOrTwoWorkers) {
  // One worker pushes and pulls what a server holds; of its own share nothing moves.
  EXPECT_CLOSE(traffic_of({100, {10}, {5}}, {{60}, {40}}).worker_port_bytes[0], 40.0);
  EXPECT_CLOSE(traffic_of({100, {10}, {5}}, {{60}, {40}}).server_port_bytes[0], 40.0);
  EXPECT_EQ(traffic_of({100, {10}, {}}, {{100}, {}}).time_s, 0.0);
  // Two workers carry M each, whatever the shares are.
  EXPECT_EQ(traffic_of({100, {10, 10}, {}}, {{70, 30}, {}}).worker_port_bytes, times(2, 100));
}

TEST(StarSplit, UnequalWorkersWithoutServers) {
  // M (1 + n/(n-2)) / (sum B/(n-2)) = 12 * 3 / 5 = 7.2 > M / 2 = 6; g = (7.2 B - 12) / 2.
  const StarSplit split = solve_star_split({12, {4, 2, 2, 2}, {}});
  EXPECT_CLOSE(split.time_s, 7.2);
  EXPECT_CLOSE(split.shares.worker_bytes[0], 8.4);
  EXPECT_CLOSE(split.shares.worker_bytes[1], 1.2);
  EXPECT_CLOSE(split.shares.worker_bytes[3], 1.2);
  EXPECT_EQ(split.limit, StarLimit::all_ports);
  EXPECT_TRUE(split.limiting_workers.empty());
  EXPECT_CLOSE(split.worker_gain, -0.72); // -T / rate / (n-2) = -7.2 / 5 / 2
  EXPECT_EQ(split.server_gain, 0.0);
  EXPECT_CLOSE(split.joint_gain, -2.88);
  // Equal shares, by comparison, would wait for the slow ones: 2 * 3/4 * 12 / 2 = 9.
  EXPECT_CLOSE(solve_colocated_parameter_server({12, {4, 2, 2, 2}, {}}).time_s, 9.0);
}

TEST(StarSplit, UnequalWorkersAndServers) {
  // rate = 10/2 + (4 + 8)/4 = 8; T = 24 * 3 / 8 = 9 against M/2 = 12: the slow workers limit. The
  // level of the fast one: 24 (1 + 1/2) / (4/2 + 3) = 7.2, at which B t = 28.8 > M and 2 * 7.2 < M.
  const StarSplit split = solve_star_split({24, {4, 2, 2, 2}, {4, 8}});
  EXPECT_CLOSE(split.time_s, 12.0);
  EXPECT_EQ(split.limit, StarLimit::slowest_workers);
  EXPECT_EQ(split.limiting_workers, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_CLOSE(split.shares.worker_bytes[0], 2.4);
  EXPECT_EQ(split.shares.worker_bytes[1], 0.0);
  EXPECT_CLOSE(split.shares.server_bytes[0], 7.2);
  EXPECT_CLOSE(split.shares.server_bytes[1], 14.4);
  EXPECT_EQ(split.worker_gain, 0.0);
  EXPECT_CLOSE(split.joint_gain, -6.0); // -M / B^2
}

TEST(StarSplit, OneSlowWorkerKeepsNoShareAndTheOthersStayAsIdleAsTheyCan) {
  // T = 12 / 1. The others fill to 12 (1 + 3/2) / (12/2) = 5: shares (4*5 - 12)/2 = 4.
  const StarSplit split = solve_star_split({12, {4, 4, 1, 4}, {}});
  EXPECT_CLOSE(split.time_s, 12.0);
  EXPECT_EQ(split.limiting_workers, std::vector<std::size_t>{2});
  EXPECT_EQ(split.shares.worker_bytes[2], 0.0);
  for (const std::size_t i : {0U, 1U, 3U}) {
    EXPECT_CLOSE(split.shares.worker_bytes[i], 4.0);
    EXPECT_CLOSE(split.traffic.worker_port_bytes[i] / 4, 5.0);
  }
  EXPECT_CLOSE(split.worker_gain, -12.0);
  EXPECT_CLOSE(split.joint_gain, -12.0);
}

TEST(StarSplit, OneVeryFastWorkerHoldsEverything) {
  // Level with the first alone: M (1 + 1/1) / (10/1) = 0.2 M, at which the others could not send M.
  const StarSplit split = solve_star_split({1, {10, 1, 1}, {}});
  EXPECT_CLOSE(split.shares.worker_bytes[0], 1.0);
  EXPECT_EQ(split.shares.worker_bytes[1], 0.0);
  EXPECT_CLOSE(split.time_s, 1.0);
  EXPECT_CLOSE(split.traffic.worker_port_bytes[0], 2.0);
}

TEST(StarSplit, TheCommonLimitTakesOverWhenBothLimitsMeet) {
  // n = k: T = M/B both ways. All workers faster by d: rate = (n/(n-2) + 1) B, of which the workers
  // are n/(2n-2).
  const StarSplit split = solve_star_split({100, times(4, 10), times(4, 10)});
  EXPECT_CLOSE(split.time_s, 10.0);
  EXPECT_EQ(split.limit, StarLimit::slowest_workers);
  EXPECT_EQ(split.limiting_workers.size(), 4U);
  EXPECT_CLOSE(split.joint_gain, -1.0 * 4 / 6);
  EXPECT_EQ(split.server_gain, 0.0);
}

TEST(StarSplit, GainsAreTheSlopesOfTheTime) {
  struct Case {
    Star star;
    std::size_t worker; // whose port becomes faster
  };
  // All ports; one slow worker; both limits at once: rate = (3 + 4 + 4 + 5) / 2 + 4 / 4 = 9, T = 18
  // * 3 / 9 = 18 / 3.
  const Case cases[] = {
      {{12, {4, 2, 2, 2}, {3}}, 1}, {{12, {4, 4, 1, 4}, {2, 2}}, 2}, {{18, {3, 4, 4, 5}, {4}}, 0}};
  for (const Case& c : cases) {
    const StarSplit split = solve_star_split(c.star);
    constexpr double step = 1e-6; // the second derivative adds about T step / B^2: 1e-5 at most
    Star faster = c.star;
    faster.worker_bytes_per_s[c.worker] += step;
    EXPECT_NEAR((solve_star_split(faster).time_s - split.time_s) / step, split.worker_gain, 2e-5);
    faster = c.star;
    faster.server_bytes_per_s[0] += step;
    EXPECT_NEAR((solve_star_split(faster).time_s - split.time_s) / step, split.server_gain, 2e-5);
    faster = c.star;
    if (split.limit == StarLimit::all_ports) {
      for (double& b : faster.worker_bytes_per_s) {
        b += step;
      }
      for (double& b : faster.server_bytes_per_s) {
        b += step;
      }
    }
    for (const std::size_t i : split.limiting_workers) {
      faster.worker_bytes_per_s[i] += step;
    }
    EXPECT_NEAR((solve_star_split(faster).time_s - split.time_s) / step, split.joint_gain, 5e-5);
  }
}

TEST(StarSplit, TwoUnequalWorkers) {
  // T = 100 / 5; the servers could take 20 * 6 / 2 = 60: 20 and 40; the workers halve the other 40.
  const StarSplit split = solve_star_split({100, {10, 5}, {2, 4}});
  EXPECT_CLOSE(split.time_s, 20.0);
  EXPECT_CLOSE(split.traffic.time_s, 20.0);
  EXPECT_EQ(split.limiting_workers, std::vector<std::size_t>{1});
  EXPECT_CLOSE(split.shares.server_bytes[0], 20.0);
  EXPECT_CLOSE(split.shares.server_bytes[1], 40.0);
  EXPECT_CLOSE(split.shares.worker_bytes[0], 20.0);
  EXPECT_CLOSE(split.shares.worker_bytes[1], 20.0);
}

TEST(StarSplit, OneWorkerSendsNothing) {
  const StarSplit split = solve_star_split({100, {10}, {5, 5}});
  EXPECT_EQ(split.time_s, 0.0);
  EXPECT_EQ(split.traffic.time_s, 0.0);
  EXPECT_EQ(split.shares.worker_bytes, times(1, 100));
  EXPECT_EQ(split.shares.server_bytes, times(2, 0));
}

TEST(StarSplit, BadStarsAreRefused) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Star& star :
       {Star{100, {}, {10}}, Star{-1, {10}, {}}, Star{nan, {10}, {}}, Star{infinity, {10}, {}},
        Star{100, {10, 0}, {}}, Star{100, {10, -5}, {}}, Star{100, {10, infinity}, {}},
        Star{100, {10, 10}, {nan}}, Star{100, {10, 10}, {0}}}) {
    EXPECT_ERROR(solve_star_split(star));
    EXPECT_ERROR(solve_parameter_server(star));
    EXPECT_ERROR(solve_colocated_parameter_server(star));
  }
  EXPECT_ERROR(solve_equal_split(0, 1, 100, 10, 10));
  EXPECT_ERROR(solve_equal_split(2, 1, 100, 10, 0));
  EXPECT_ERROR(solve_equal_split(2, 1, 100, 0, 10));
  EXPECT_ERROR(ring_allreduce_s(100, {}));
  EXPECT_ERROR(traffic_of({100, {10, 10}, {}}, {{100}, {}}));
}

TEST(Slots, ShareTheModelAsTheEquationsDo) {
  for (std::uint64_t n = 2; n <= 64; ++n) {
    for (std::uint64_t k = 0; k <= n; ++k) {
      const auto slots = slot_counts(n, k);
      ASSERT_TRUE(slots);
      EXPECT_EQ(n * slots->per_worker + k * slots->per_server, slots->total);
      const EqualSplit split = solve_equal_split(n, k, static_cast<double>(slots->total), 1, 1);
      EXPECT_NEAR(split.worker_share_bytes, static_cast<double>(slots->per_worker), 1e-9);
      EXPECT_NEAR(split.server_share_bytes, static_cast<double>(slots->per_server), 1e-9);
    }
  }
}

TEST(Slots, AreUndefinedForOneWorkerAndForMoreServersThanWorkers) {
  EXPECT_EQ(slot_counts(8, 4)->total, 88U); // 64 + 32 - 8
  EXPECT_EQ(slot_counts(8, 4)->per_worker, 4U);
  EXPECT_EQ(slot_counts(8, 4)->per_server, 14U);
  EXPECT_EQ(slot_counts(8, 0)->per_server, 0U);
  EXPECT_FALSE(slot_counts(0, 0));
  EXPECT_FALSE(slot_counts(1, 0));
  EXPECT_FALSE(slot_counts(1, 1)); // D = 0
  EXPECT_FALSE(slot_counts(8, 9));
  EXPECT_FALSE(slot_counts(std::uint64_t{1} << 33U, 1));
}

TEST(Gains, AreThePapersExampleWithMoreDigits) {
  // Error E4: 1504/1024 and 1504/992, printed as 1.46 (cut off) and 1.52 (rounded).
  const double best = solve_equal_split(32, 16, 1, 1, 1).time_s;
  EXPECT_CLOSE(ring_allreduce_s(1, times(32, 1)) / best, 1.46875);
  EXPECT_CLOSE(solve_parameter_server({1, times(32, 1), times(16, 1)})->time_s / best,
               1504.0 / 992);
}

} // namespace
} // namespace reckon
