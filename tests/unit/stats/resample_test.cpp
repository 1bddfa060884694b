// SPDX-License-Identifier: Apache-2.0
#include "stats/resample.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

namespace reckon {
namespace {

TEST(UniformIndex, ReachesEveryIndexEquallyOften) {
  constexpr std::uint64_t seed = 7007;
  SCOPED_TRACE(seed);
  std::mt19937_64 engine(seed);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) {
    ++counts.at(uniform_index(engine, counts.size()));
  }
  for (const int c : counts) {
    EXPECT_NEAR(c, 10000, 4 * std::sqrt(70000 * 1.0 / 7 * 6 / 7));
  }
  EXPECT_EQ(uniform_index(engine, 1), 0U);
}

TEST(UniformUnit, IsTheSameEverywhere) {
  // The 10000th output of a default std::mt19937_64 is 9981545732273789042 by the standard
  // ([rand.predef]); its top 53 bits over 2^53.
  std::mt19937_64 engine;
  engine.discard(9999);
  EXPECT_EQ(uniform_unit(engine),
            static_cast<double>(9981545732273789042U >> 11U) / 9007199254740992.0);
}

TEST(BootstrapMedian, IsReproducibleAndDependsOnTheSeedOnly) {
  std::vector<double> samples;
  for (int i = 0; i < 30; ++i) {
    samples.push_back(std::sin(i));
  }
  const Interval a = bootstrap_median(samples, 0.95, 400, 5);
  const Interval b = bootstrap_median(samples, 0.95, 400, 5);
  const Interval c = bootstrap_median(samples, 0.95, 400, 6);
  EXPECT_EQ(a.lo, b.lo);
  EXPECT_EQ(a.hi, b.hi);
  EXPECT_TRUE(a.lo != c.lo || a.hi != c.hi);
}

TEST(BootstrapMedian, OfEqualSamplesIsAPointAndOfNothingIsNotANumber) {
  const Interval same = bootstrap_median(std::vector<double>(9, 4.0));
  EXPECT_EQ(same.lo, 4);
  EXPECT_EQ(same.hi, 4);
  const Interval one = bootstrap_median(std::vector<double>{2.5});
  EXPECT_EQ(one.lo, 2.5);
  EXPECT_EQ(one.hi, 2.5);
  EXPECT_TRUE(std::isnan(bootstrap_median({}).lo));
  EXPECT_ERROR(bootstrap_median(std::vector<double>{1}, 1.0));
  EXPECT_ERROR(bootstrap_median(std::vector<double>{1}, 0.9, 0));
}

TEST(BootstrapMedian, MedianOfTwoSamplesHasItsThreeKnownOutcomes) {
  // Draws of {0, 1}: medians 0, 1/2, 1 with probability 1/4, 1/2, 1/4. The central 40 % is
  // therefore 1/2 alone, the central 90 % everything.
  const std::vector<double> samples{0, 1};
  const Interval narrow = bootstrap_median(samples, 0.4, 4000);
  EXPECT_EQ(narrow.lo, 0.5);
  EXPECT_EQ(narrow.hi, 0.5);
  const Interval wide = bootstrap_median(samples, 0.9, 4000);
  EXPECT_EQ(wide.lo, 0);
  EXPECT_EQ(wide.hi, 1);
}

TEST(BootstrapMedian, CoversTheTrueMedianAboutAsOftenAsItSays) {
  constexpr std::uint64_t seed = 7008;
  SCOPED_TRACE(seed);
  std::mt19937_64 engine(seed);
  int covered = 0;
  constexpr int rounds = 300;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> samples(25);
    for (double& x : samples) {
      x = -std::log(1 - uniform_unit(engine)); // exponential: median ln 2
    }
    const Interval i = bootstrap_median(samples, 0.95, 300);
    ASSERT_LE(i.lo, i.hi);
    covered += i.lo <= std::log(2.0) && std::log(2.0) <= i.hi ? 1 : 0;
  }
  EXPECT_GE(covered, rounds * 90 / 100);
  EXPECT_LE(covered, rounds * 99 / 100);
}

} // namespace
} // namespace reckon
