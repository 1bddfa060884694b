// SPDX-License-Identifier: Apache-2.0
#include "stats/speeds.hpp"

#include "stats/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace reckon {
namespace {

/// `n` times about these seconds, spread evenly over `spread` of them to either side.
void add(std::vector<double>& all, std::size_t n, double seconds, double spread) {
  for (std::size_t i = 0; i < n; ++i) {
    const double at = n == 1 ? 0 : 2 * static_cast<double>(i) / static_cast<double>(n - 1) - 1;
    all.push_back(seconds * (1 + spread * at));
  }
}

TEST(TwoSpeeds, FastAndSlowIterationsAreToldApartInAnyOrder) {
  std::vector<double> all;
  add(all, 35, 7.6, 0.03);
  add(all, 31, 4.4, 0.02);
  add(all, 34, 7.6, 0.03);
  const auto found = two_speeds(all);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->fast_seconds, 4.4, 0.01);
  EXPECT_NEAR(found->slow_seconds, 7.6, 0.05);
  EXPECT_DOUBLE_EQ(found->fast_share, 0.31);
}

TEST(TwoSpeeds, OneSpeedIsNotTakenForTwo) {
  std::vector<double> even;
  add(even, 200, 5, 0.5);
  EXPECT_FALSE(two_speeds(even));
  EXPECT_FALSE(two_speeds(std::vector<double>(100, 0.25))); // no two of them differ
  std::mt19937_64 engine(7);
  for (int round = 0; round < 50; ++round) { // normal, by Box and Muller
    std::vector<double> normal;
    for (int i = 0; i < 100; ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - uniform_unit(engine)));
      normal.push_back(
          std::exp(0.1 * radius * std::cos(2 * std::numbers::pi * uniform_unit(engine))));
    }
    EXPECT_FALSE(two_speeds(normal)) << "seed 7, round " << round;
  }
}

TEST(TwoSpeeds, WhatHappensSeldomOrHardlyDiffersOrWasSeenTooFewTimesIsNoSpeed) {
  const auto of = [](std::size_t fast, std::size_t slow, double slow_seconds) {
    std::vector<double> all;
    add(all, fast, 1, 0.01);
    add(all, slow, slow_seconds, 0.01);
    return two_speeds(all).has_value();
  };
  EXPECT_TRUE(of(90, 10, 2));
  EXPECT_FALSE(of(91, 9, 2));
  EXPECT_TRUE(of(10, 90, 2));
  EXPECT_FALSE(of(9, 91, 2));
  EXPECT_TRUE(of(50, 50, 1.17));
  EXPECT_FALSE(of(50, 50, 1.13));
  EXPECT_TRUE(of(15, 15, 2));
  EXPECT_FALSE(of(14, 15, 2));
  EXPECT_FALSE(two_speeds({}));
}

} // namespace
} // namespace reckon
