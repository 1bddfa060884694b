// SPDX-License-Identifier: Apache-2.0
#include "probe/growth.hpp"

#include "stats/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace reckon {
namespace {

/// A way in virtual time: a port sends one write after the other, and a write is done when word of
/// it is back, `round_trip_s` after it left. Written down as what it is, not as a formula of a
/// rate.
struct LongWay {
  double port_bytes_per_s, round_trip_s, write_bytes;

  /// What arrives in a second with `flight_bytes` posted and not done, whole writes of them.
  [[nodiscard]] double rate_with(double flight_bytes) const {
    constexpr std::size_t k_writes = 4000;
    const auto window = static_cast<std::size_t>(std::max(1.0, flight_bytes / write_bytes));
    std::vector<double> left(k_writes);
    for (std::size_t i = 0; i < k_writes; ++i) {
      const double free = i == 0 ? 0 : left[i - 1];
      const double posted = i < window ? 0 : left[i - window] + round_trip_s;
      left[i] = std::max(free, posted) + write_bytes / port_bytes_per_s;
    }
    return write_bytes * k_writes / 2 / (left[k_writes - 1] - left[k_writes / 2 - 1]);
  }
};

TEST(GrowUntilSteady, FindsWhatAWayNeedsInFlight) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    // 5 to 200 MB/s, 0.1 to 100 ms: up to 20 MB on the way.
    const LongWay way{5e6 * static_cast<double>(1 + uniform_index(random, 40)),
                      1e-4 * static_cast<double>(1 + uniform_index(random, 1000)), 65536};
    const double product = way.port_bytes_per_s * way.round_trip_s + way.write_bytes;
    const double found = grow_until_steady(4 * way.write_bytes, 64 << 20, [&](double flight) {
      return std::vector{way.rate_with(flight)};
    });
    // Twice as much brings no more than k_growth, so what is found is within that of the port; and
    // the window that was the first to be enough is less than twice the product.
    EXPECT_GE(way.rate_with(found), way.port_bytes_per_s / (1 + k_growth) * 0.999);
    EXPECT_LE(found, std::max(4 * way.write_bytes, 2 * product));
  }
}

TEST(GrowUntilSteady, TriesEachLoadOnceAndNoneBeyondTheMost) {
  std::vector<double> tried;
  const auto linear = [&](double load) {
    tried.push_back(load);
    return std::vector{load};
  };
  EXPECT_EQ(grow_until_steady(3, 20, linear), 20);
  EXPECT_EQ(tried, (std::vector<double>{3, 6, 12, 20}));
  tried.clear();
  EXPECT_EQ(grow_until_steady(30, 20, linear), 30);
  EXPECT_EQ(tried, (std::vector<double>{30}));
}

TEST(GrowUntilSteady, GoesOnForOneSlowWayAmongMany) {
  // The fast ones have enough with 1, and would hide the slow one in a sum: 1005, 1010, 1020.
  const auto rates = [](double load) {
    return std::vector<double>{500, 500, std::min(5 * load, 20.0)};
  };
  EXPECT_EQ(grow_until_steady(1, 64, rates), 4);
}

TEST(GrowUntilSteady, TakesAFewPerCentForNoise) {
  // 100, 103: no growth. The least of loads that bring the same is enough.
  EXPECT_EQ(grow_until_steady(1, 8, [](double load) { return std::vector{97 + 3 * load}; }), 1);
}

constexpr std::array k_loads{4.0, 8.0, 16.0, 32.0};

TEST(LeastOfTheFastest, IsFoundOnAMachineThatSlowsDownMeanwhile) {
  // 8 are enough. A machine that from some try on has less than half of its speed makes 8 seem
  // slower than 4 in one round, and in the two others 8 are twice as fast.
  const auto carried = [](double load) { return std::min(load, 8.0); };
  for (int slow_from = 0; slow_from <= 12; ++slow_from) {
    int tried = 0;
    const auto rate = [&](double load) { return carried(load) * (tried++ < slow_from ? 1 : 0.45); };
    EXPECT_EQ(least_of_the_fastest(k_loads, [](int rounds) { return rounds < 3; }, rate), 8) << slow_from;
    EXPECT_EQ(tried, 12);
  }
}

constexpr auto k_once = [](int) { return false; };

TEST(LeastOfTheFastest, TakesAFewPerCentForNoise) {
  EXPECT_EQ(least_of_the_fastest(k_loads, k_once, [](double load) { return 97 + load / 16; }), 4);
  EXPECT_EQ(least_of_the_fastest(k_loads, k_once, [](double load) { return load; }), 32);
}

} // namespace
} // namespace reckon
