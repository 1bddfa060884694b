// SPDX-License-Identifier: Apache-2.0
#include "stats/summary.hpp"

#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace reckon {
namespace {

TEST(Summary, GivesOrderStatisticsOfKnownSamples) {
  // 1..101: position q * 100 is exact, so p50 = 51, p99 = 100.
  std::vector<double> samples;
  for (int i = 101; i >= 1; --i) {
    samples.push_back(i);
  }
  const Summary s = summarize(samples);
  EXPECT_EQ(s.n, 101U);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.p50, 51);
  EXPECT_EQ(s.p99, 100);
  EXPECT_EQ(s.max, 101);
  // |i - 51| takes 0 once and 1..50 twice: 101 values whose 51st (1-based) is 25.
  EXPECT_EQ(s.mad, 25);
  EXPECT_DOUBLE_EQ(s.spread, 25.0 / 51.0);
}

TEST(Summary, InterpolatesBetweenTheTwoNearest) {
  // Position 0.9 * 3 = 2.7: 3 + 0.7 * (7 - 3) = 5.8.
  const std::vector<double> sorted{1, 2, 3, 7};
  EXPECT_DOUBLE_EQ(percentile(sorted, 0.9), 5.8);
  EXPECT_DOUBLE_EQ(percentile(sorted, 0.5), 2.5);
  EXPECT_EQ(percentile(sorted, 0), 1);
  EXPECT_EQ(percentile(sorted, 1), 7);
}

TEST(Summary, OfNothingIsNotANumberAndOfOneSampleIsThatSample) {
  const Summary none = summarize({});
  EXPECT_EQ(none.n, 0U);
  for (const double x : {none.min, none.p50, none.p99, none.max, none.mad, none.spread}) {
    EXPECT_TRUE(std::isnan(x));
  }
  EXPECT_TRUE(std::isnan(percentile({}, 0.5)));
  EXPECT_EQ(summarize_rate({}, 1).n, 0U);

  const std::vector<double> one{3.5};
  const Summary s = summarize(one);
  EXPECT_EQ(s.min, 3.5);
  EXPECT_EQ(s.p99, 3.5);
  EXPECT_EQ(s.mad, 0);
  EXPECT_EQ(s.spread, 0);
}

TEST(Summary, OneWildSampleMovesNeitherMedianNorSpreadMuch) {
  std::vector<double> samples(99, 10.0);
  samples.push_back(1e9);
  const Summary s = summarize(samples);
  EXPECT_EQ(s.p50, 10);
  EXPECT_EQ(s.spread, 0);
  EXPECT_EQ(s.max, 1e9);
}

TEST(Summary, SpreadOfAZeroMedianIsZeroOrInfinite) {
  EXPECT_EQ(summarize(std::vector<double>{0, 0, 0}).spread, 0);
  EXPECT_TRUE(std::isinf(summarize(std::vector<double>{-1, 0, 1}).spread));
}

TEST(Summary, RefusesWhatIsNotFiniteAndQuantilesOutOfRange) {
  EXPECT_ERROR(summarize(std::vector<double>{1, std::nan("")}));
  EXPECT_ERROR(summarize(std::vector<double>{std::numeric_limits<double>::infinity()}));
  EXPECT_ERROR(summarize_rate(std::vector<double>{1, 0}, 8));
  EXPECT_ERROR(percentile(std::vector<double>{1}, 1.01));
  EXPECT_ERROR(percentile(std::vector<double>{1}, std::nan("")));
}

TEST(SummaryOfARate, HasItsP99InTheSlowTail) {
  // 100 transfers of 1000 bytes: 98 of 1 s, then 2 s and 4 s. Time's p99 is at position 98.01,
  // between the two slow ones: 2 + 0.01 * 2 = 2.02 s. A rate's own 99th percentile would say 1000.
  std::vector<double> seconds(98, 1.0);
  seconds.push_back(2);
  seconds.push_back(4);
  const Summary s = summarize_rate(seconds, 1000);
  EXPECT_EQ(s.min, 250);
  EXPECT_EQ(s.p50, 1000);
  EXPECT_NEAR(s.p99, 1000 / 2.02, 1e-9); // 0.99 * 99 is rounded
  EXPECT_EQ(s.max, 1000);
  EXPECT_EQ(s.mad, 0);
}

TEST(SummaryOfARate, KeepsItsOrderForAnySamples) {
  test::for_cases(7001, 300, [](test::Random& random) {
    std::vector<double> seconds(1 + random.below(40));
    for (double& t : seconds) {
      t = std::exp(random.uniform(-15, 5));
    }
    const Summary t = summarize(seconds);
    ASSERT_LE(t.min, t.p50);
    ASSERT_LE(t.p50, t.p99);
    ASSERT_LE(t.p99, t.max);
    ASSERT_GE(t.mad, 0);
    const Summary r = summarize_rate(seconds, 4096);
    ASSERT_LE(r.min, r.p99);
    ASSERT_LE(r.p99, r.p50);
    ASSERT_LE(r.p50, r.max);
    // Order of arrival means nothing.
    std::ranges::reverse(seconds);
    ASSERT_EQ(summarize(seconds).p99, t.p99);
  });
}

} // namespace
} // namespace reckon
