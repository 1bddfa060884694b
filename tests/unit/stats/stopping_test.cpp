// SPDX-License-Identifier: Apache-2.0
#include "stats/stopping.hpp"

#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace reckon {
namespace {

/// Feeds samples `period` apart until the rule is done; returns how many it took.
template <class Next>
std::size_t play(MedianStoppingRule& rule, Seconds period, Next next,
                 std::size_t most = 1'000'000) {
  std::size_t n = 0;
  while (!rule.done() && n < most) {
    EXPECT_EQ(rule.reason(), StopReason::running);
    rule.add(next(n), static_cast<double>(n + 1) * period);
    ++n;
  }
  return n;
}

TEST(MedianStoppingRule, StopsAtTheFewestSamplesWhenTheyAreAllEqual) {
  MedianStoppingRule rule;
  // 10 samples of 50 ms: both minima (10 samples, 0.2 s) are reached with the tenth.
  EXPECT_EQ(play(rule, Seconds(0.05), [](std::size_t) { return 3.0; }), 10U);
  EXPECT_EQ(rule.reason(), StopReason::precise);
}

TEST(MedianStoppingRule, WaitsForTheLeastTime) {
  MedianStoppingRule rule;
  // 0.2 s at 1/1024 s (exact in binary) a sample: the first sample at or after 204.8 periods is the
  // 205th.
  EXPECT_EQ(play(rule, Seconds(1.0 / 1024), [](std::size_t) { return 3.0; }), 205U);
  EXPECT_EQ(rule.reason(), StopReason::precise);
}

TEST(MedianStoppingRule, TheBudgetEndsItEvenWithTooFewSamples) {
  MedianStoppingRule rule({.budget = Seconds(5)});
  EXPECT_EQ(play(rule, Seconds(2), [](std::size_t) { return 1.0; }), 3U);
  EXPECT_EQ(rule.reason(), StopReason::budget);
}

TEST(MedianStoppingRule, AMedianThatKeepsMovingEndsOnTheBudget) {
  MedianStoppingRule rule({.budget = Seconds(5)});
  // Doubles every 50 samples: the median of the first n moves by 2^(n/8) or so between looks.
  const std::size_t n = play(rule, Seconds(1.0 / 64),
                             [](std::size_t i) { return std::exp2(static_cast<double>(i) / 50); });
  EXPECT_EQ(n, 320U);
  EXPECT_EQ(rule.reason(), StopReason::budget);
}

TEST(MedianStoppingRule, TwoModesOfEqualWeightAreNeverCalledPrecise) {
  // MAD/median of 1,2,1,2,... is 1/3 and its order-statistic interval spans both modes. The median
  // itself is 1.5 at every even n and a mode at every odd n; looks at 10, 15, 23, 35 ... see both
  // kinds.
  MedianStoppingRule rule({.max_samples = 300});
  play(rule, Seconds(0.05), [](std::size_t i) { return i % 2 == 0 ? 1.0 : 2.0; });
  EXPECT_NE(rule.reason(), StopReason::precise);
}

TEST(MedianStoppingRule, NoiseThatStaysTheSameEndsAsStabilised) {
  test::Random random(7002);
  MedianStoppingRule rule({.precision = 1e-3, .budget = Seconds(1e9)});
  const std::size_t n =
      play(rule, Seconds(0.05), [&](std::size_t) { return random.uniform(9, 11); });
  // Uniform on [9, 11]: half-width 0.98 * 2 / sqrt(n) reaches 0.01 only at n = 38416; the median's
  // standard error, 1 / sqrt(n), makes three looks agree within 0.01 much earlier.
  EXPECT_EQ(rule.reason(), StopReason::stabilised);
  EXPECT_LT(n, 38416U);
}

TEST(MedianStoppingRule, SampleLimitCountsAsBudget) {
  MedianStoppingRule rule({.min_time = Seconds(10), .budget = Seconds(100), .max_samples = 1000});
  EXPECT_EQ(play(rule, Seconds(1e-6), [](std::size_t) { return 1.0; }), 1000U);
  EXPECT_EQ(rule.reason(), StopReason::budget);
}

TEST(MedianStoppingRule, WhenItSaysPreciseTheMedianIsCloseToTheTruth) {
  int precise = 0;
  int wrong = 0;
  test::for_cases(7003, 200, [&](test::Random& random) {
    std::vector<double> samples;
    MedianStoppingRule rule({.min_time = Seconds(0), .precision = 0.02, .budget = Seconds(1e9)});
    play(rule, Seconds(1), [&](std::size_t) {
      samples.push_back(random.uniform(95, 105));
      return samples.back();
    });
    if (rule.reason() == StopReason::precise) {
      ++precise;
      const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
      std::nth_element(samples.begin(), middle, samples.end());
      wrong += std::abs(*middle - 100) > 2 ? 1 : 0;
    }
  });
  EXPECT_GE(precise, 100);
  // The interval covers 95 %; looking until it is narrow costs some of that.
  EXPECT_LE(wrong, precise / 10);
}

} // namespace
} // namespace reckon
