// SPDX-License-Identifier: Apache-2.0
#include "equations/split.hpp"

#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reckon {
namespace {

constexpr std::uint64_t k_seed = 20201104;
constexpr int k_cases = 400;
// Shares come from tB - M, whose rounding is that of M: some 1e-16 of M for each machine.
constexpr double k_rounding = 1e-11;

using test::Random;

/// Stars of all kinds: equal, nearly equal and very unequal ports, with and without servers, 1 to
/// 12 workers.
Star random_star(Random& random) {
  const double spread = std::vector<double>{0, 0.01, 1, 4}[random.below(4)];
  const auto rate = [&] { return std::exp2(random.uniform(-spread, spread)) * 1e9; };
  Star star;
  star.model_bytes = std::exp2(random.uniform(0, 40));
  const std::size_t workers = 1 + random.below(12);
  const std::size_t servers = random.below(3) == 0 ? 0 : random.below(2 * workers + 2);
  for (std::size_t i = 0; i < workers; ++i) {
    star.worker_bytes_per_s.push_back(rate());
  }
  for (std::size_t j = 0; j < servers; ++j) {
    star.server_bytes_per_s.push_back(rate());
  }
  return star;
}

template <class Check>
void for_stars(Check check) {
  test::for_cases(k_seed, k_cases, [&](Random& random) {
    const Star star = random_star(random);
    SCOPED_TRACE(testing::Message()
                 << "M " << star.model_bytes << ", workers "
                 << testing::PrintToString(star.worker_bytes_per_s) << ", servers "
                 << testing::PrintToString(star.server_bytes_per_s));
    check(star, random);
  });
}

/// How long each port is busy, counted flow by flow between different machines: equation 5 is not
/// used.
std::vector<double> port_times(const Star& star, const StarShares& shares) {
  const std::size_t n = star.worker_bytes_per_s.size();
  const std::size_t k = star.server_bytes_per_s.size();
  std::vector<double> sent(n + k, 0.0);
  for (std::size_t worker = 0; worker < n; ++worker) {
    for (std::size_t service = 0; service < n + k; ++service) {
      if (service != worker) {
        const double share =
            service < n ? shares.worker_bytes[service] : shares.server_bytes[service - n];
        sent[worker] += share;  // the gradient
        sent[service] += share; // the sum; what is received is the mirror image
      }
    }
  }
  for (std::size_t i = 0; i < n + k; ++i) {
    sent[i] /= i < n ? star.worker_bytes_per_s[i] : star.server_bytes_per_s[i - n];
  }
  return sent;
}

double longest(const std::vector<double>& times) {
  return *std::max_element(times.begin(), times.end());
}

double& share(StarShares& shares, std::size_t service) {
  const std::size_t n = shares.worker_bytes.size();
  return service < n ? shares.worker_bytes[service] : shares.server_bytes[service - n];
}

TEST(StarSplitProperty, SharesAreAPartitionOfTheModelAndTakeTheTimeStated) {
  for_stars([](const Star& star, Random&) {
    const StarSplit split = solve_star_split(star);
    double total = 0;
    for (const auto* side : {&split.shares.worker_bytes, &split.shares.server_bytes}) {
      for (const double bytes : *side) {
        EXPECT_GE(bytes, 0.0);
        total += bytes;
      }
    }
    EXPECT_NEAR(total, star.model_bytes, k_rounding * star.model_bytes);
    EXPECT_NEAR(longest(port_times(star, split.shares)), split.time_s, k_rounding * split.time_s);
    EXPECT_NEAR(split.traffic.time_s, split.time_s, k_rounding * split.time_s);
  });
}

TEST(StarSplitProperty, IsNeverSlowerThanAnyOtherScheme) {
  for_stars([](const Star& star, Random&) {
    const double best = solve_star_split(star).time_s * (1 - k_rounding);
    EXPECT_LE(best, ring_allreduce_s(star.model_bytes, star.worker_bytes_per_s));
    EXPECT_LE(best, solve_colocated_parameter_server(star).time_s);
    if (const auto servers = solve_parameter_server(star)) {
      EXPECT_LE(best, servers->time_s);
    }
  });
}

TEST(StarSplitProperty, IsNeverBelowTheCutRoundAnyMachine) {
  // With two workers or more, each must send its own gradient to somewhere else or get everyone
  // else's.
  for_stars([](const Star& star, Random&) {
    const std::size_t n = star.worker_bytes_per_s.size();
    const double slowest =
        *std::min_element(star.worker_bytes_per_s.begin(), star.worker_bytes_per_s.end());
    const double bound = n > 1 ? star.model_bytes / slowest : 0;
    EXPECT_GE(solve_star_split(star).time_s, bound * (1 - k_rounding));
  });
}

TEST(StarSplitProperty, NoMoveOfAShareIsFaster) {
  // The time is convex in the shares: if no small move is better, nothing is.
  for_stars([](const Star& star, Random& random) {
    const StarSplit split = solve_star_split(star);
    const std::size_t services = star.worker_bytes_per_s.size() + star.server_bytes_per_s.size();
    for (int attempt = 0; attempt < 60; ++attempt) {
      StarShares moved = split.shares;
      for (std::size_t moves = 1 + random.below(3); moves > 0; --moves) {
        double& from = share(moved, random.below(services));
        const double bytes = from * std::exp2(-random.uniform(0, 20));
        from -= bytes;
        share(moved, random.below(services)) += bytes;
      }
      EXPECT_GE(longest(port_times(star, moved)), split.time_s * (1 - k_rounding));
    }
  });
}

TEST(StarSplitProperty, BesideTheSlowestWorkersThePortsAreAsIdleAsTheyCanBe) {
  // Three workers or more. Ports that a share can relieve form one level: no move makes the busiest
  // of them idler.
  for_stars([](const Star& star, Random& random) {
    const StarSplit split = solve_star_split(star);
    const std::size_t n = star.worker_bytes_per_s.size();
    if (n < 3) {
      return;
    }
    const auto level = [&](const StarShares& shares) {
      const std::vector<double> times = port_times(star, shares);
      double out = 0;
      for (std::size_t i = 0; i < times.size(); ++i) {
        const double bytes = i < n ? shares.worker_bytes[i] : shares.server_bytes[i - n];
        out = std::max(out, bytes > k_rounding * star.model_bytes ? times[i] : 0.0);
      }
      return out;
    };
    const double best = level(split.shares);
    const std::size_t services = n + star.server_bytes_per_s.size();
    for (int attempt = 0; attempt < 30; ++attempt) {
      StarShares moved = split.shares;
      double& from = share(moved, random.below(services));
      const double bytes = from * std::exp2(-random.uniform(0, 10));
      from -= bytes;
      share(moved, random.below(services)) += bytes;
      EXPECT_GE(level(moved), best * (1 - k_rounding));
    }
  });
}

TEST(StarSplitProperty, RelabelledMachinesGetTheRelabelledSplit) {
  for_stars([](const Star& star, Random& random) {
    std::vector<std::size_t> workers(star.worker_bytes_per_s.size());
    std::vector<std::size_t> servers(star.server_bytes_per_s.size());
    std::iota(workers.begin(), workers.end(), std::size_t{0});
    std::iota(servers.begin(), servers.end(), std::size_t{0});
    std::shuffle(workers.begin(), workers.end(), random);
    std::shuffle(servers.begin(), servers.end(), random);
    Star relabelled{star.model_bytes, {}, {}};
    for (const std::size_t i : workers) {
      relabelled.worker_bytes_per_s.push_back(star.worker_bytes_per_s[i]);
    }
    for (const std::size_t j : servers) {
      relabelled.server_bytes_per_s.push_back(star.server_bytes_per_s[j]);
    }
    const StarSplit a = solve_star_split(star);
    const StarSplit b = solve_star_split(relabelled);
    EXPECT_NEAR(a.time_s, b.time_s, k_rounding * a.time_s);
    EXPECT_EQ(a.limit, b.limit);
    const double tolerance = k_rounding * star.model_bytes;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      EXPECT_NEAR(b.shares.worker_bytes[i], a.shares.worker_bytes[workers[i]], tolerance);
    }
    for (std::size_t j = 0; j < servers.size(); ++j) {
      EXPECT_NEAR(b.shares.server_bytes[j], a.shares.server_bytes[servers[j]], tolerance);
    }
  });
}

TEST(StarSplitProperty, TimeScalesWithBytesAndAgainstBandwidth) {
  for_stars([](const Star& star, Random&) {
    const StarSplit split = solve_star_split(star);
    Star scaled = star;
    scaled.model_bytes *= 3;
    for (double& b : scaled.worker_bytes_per_s) {
      b *= 5;
    }
    for (double& b : scaled.server_bytes_per_s) {
      b *= 5;
    }
    const StarSplit other = solve_star_split(scaled);
    EXPECT_NEAR(other.time_s, split.time_s * 3 / 5, k_rounding * split.time_s);
    for (std::size_t i = 0; i < split.shares.worker_bytes.size(); ++i) {
      EXPECT_NEAR(other.shares.worker_bytes[i], 3 * split.shares.worker_bytes[i],
                  k_rounding * scaled.model_bytes);
    }
  });
}

TEST(StarSplitProperty, MoreBandwidthNeverHurtsAndTheGainsAreTheSlopes) {
  for_stars([](const Star& star, Random& random) {
    const StarSplit split = solve_star_split(star);
    const auto change = [&](const Star& faster) {
      return solve_star_split(faster).time_s - split.time_s;
    };
    const double noise = k_rounding * split.time_s;

    Star faster = star;
    const std::size_t worker = random.below(star.worker_bytes_per_s.size());
    faster.worker_bytes_per_s[worker] *= random.uniform(1, 2);
    EXPECT_LE(change(faster), noise);
    faster = star;
    faster.server_bytes_per_s.push_back(random.uniform(1e7, 1e11));
    EXPECT_LE(change(faster), noise);

    // The slope over a millionth of the bandwidth. At a limit about to change it bends within the
    // step, so it may only be flatter than the gain, never steeper.
    if (split.limit == StarLimit::nothing) {
      EXPECT_EQ(split.joint_gain, 0.0);
      return;
    }
    const double slowest =
        *std::min_element(star.worker_bytes_per_s.begin(), star.worker_bytes_per_s.end());
    const double step = 1e-6 * slowest;
    faster = star;
    const bool all = split.limit == StarLimit::all_ports;
    for (std::size_t i = 0; i < faster.worker_bytes_per_s.size(); ++i) {
      const auto& slow = split.limiting_workers;
      faster.worker_bytes_per_s[i] +=
          all || std::find(slow.begin(), slow.end(), i) != slow.end() ? step : 0;
    }
    for (double& b : faster.server_bytes_per_s) {
      b += all ? step : 0;
    }
    // The second derivative adds about T (step / B)^2, the subtraction rounds T by 1e-15.
    const double tolerance = 1e-5 * std::abs(split.joint_gain) * step + noise;
    EXPECT_GE(change(faster), split.joint_gain * step - tolerance);
    const double half = 0.25 * split.joint_gain * step;
    EXPECT_LE(change(faster), half + tolerance) << "the gain is promised but does not come";
  });
}

} // namespace
} // namespace reckon
