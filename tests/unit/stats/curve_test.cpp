// SPDX-License-Identifier: Apache-2.0
#include "stats/curve.hpp"

#include "core/error.hpp"
#include "stats/resample.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace reckon {
namespace {

CurvePoint exact(double bytes, double seconds) {
  return {bytes, seconds, seconds, seconds};
}

TEST(Curve, PassesThroughItsSamplesAndIsLinearBetween) {
  const Curve curve({{100, 2, 1, 4}, {300, 6, 5, 10}});
  EXPECT_EQ(curve.seconds_at(100), 2);
  EXPECT_EQ(curve.seconds_at(300), 6);
  EXPECT_EQ(curve.seconds_at(150), 3); // a quarter of the way from 2 to 6
  EXPECT_EQ(curve.seconds_at(150, Estimate::lo), 2);
  EXPECT_EQ(curve.seconds_at(150, Estimate::hi), 5.5);
  EXPECT_EQ(curve.bandwidth_at(150).as_bytes_per_s(), 50);
}

TEST(Curve, BelowTheFirstSampleKeepsItsTime) {
  const Curve curve({exact(64, 3), exact(128, 4)});
  EXPECT_EQ(curve.seconds_at(63), 3);
  EXPECT_EQ(curve.seconds_at(0), 3);
}

TEST(Curve, BeyondTheLastSampleGrowsAtTheMarginalRateOfTheLastOctave) {
  // Last octave: from 500 (the largest sample at or below 1000 / 2) to 1000, 3 s for 500 bytes. The
  // wobble at 900 does not count.
  const Curve curve({exact(10, 1), exact(500, 2), exact(900, 4.9), exact(1000, 5)});
  EXPECT_DOUBLE_EQ(curve.seconds_at(2000), 5 + 1000 * 3.0 / 500);
  EXPECT_DOUBLE_EQ(curve.marginal_bandwidth().as_bytes_per_s(), 500.0 / 3);
}

TEST(Curve, BeyondTheLastSampleKeepsTheRelativeInterval) {
  const Curve curve({{1000, 1, 0.1, 1.1}, {2000, 2, 1.8, 3}});
  EXPECT_DOUBLE_EQ(curve.seconds_at(4000), 4);
  EXPECT_DOUBLE_EQ(curve.seconds_at(4000, Estimate::lo), 3.6); // 0.9 of 4
  EXPECT_DOUBLE_EQ(curve.seconds_at(4000, Estimate::hi), 6);   // 1.5 of 4
}

TEST(Curve, ALastOctaveThatGetsFasterIsNoiseAndTheMeanRateIsUsed) {
  const Curve curve({exact(100, 5), exact(200, 4)});
  EXPECT_DOUBLE_EQ(curve.seconds_at(400), 4 + 200 * 4.0 / 200);
}

TEST(Curve, OneSampleIsALatencyAndAMeanRate) {
  const Curve curve({exact(100, 5)});
  EXPECT_EQ(curve.seconds_at(1), 5);
  EXPECT_DOUBLE_EQ(curve.seconds_at(300), 15);
  const Curve latency({exact(0, 5)});
  EXPECT_EQ(latency.seconds_at(1e9), 5);
}

TEST(Curve, EnvelopeNeverDecreasesAndLeavesGoodCurvesAlone) {
  const std::vector<CurvePoint> points{{1, 3, 2, 9}, {2, 2, 1, 4}, {4, 5, 4, 6}};
  const Curve raised(points, Curve::Shape::non_decreasing);
  EXPECT_EQ(raised.seconds_at(2), 3);
  EXPECT_EQ(raised.seconds_at(2, Estimate::lo), 2);
  EXPECT_EQ(raised.seconds_at(4), 5);
  EXPECT_EQ(raised.seconds_at(4, Estimate::hi), 9);
  EXPECT_EQ(Curve(points).seconds_at(2), 2);
}

TEST(Curve, RefusesPointsThatAreNotACurve) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THROW(Curve({}), Error);
  EXPECT_THROW(Curve({exact(2, 1), exact(2, 2)}), Error);
  EXPECT_THROW(Curve({exact(2, 1), exact(1, 2)}), Error);
  EXPECT_THROW(Curve({exact(-1, 1)}), Error);
  EXPECT_THROW(Curve({exact(nan, 1)}), Error);
  EXPECT_THROW(Curve({exact(inf, 1)}), Error);
  EXPECT_THROW(Curve({exact(1, 0)}), Error);
  EXPECT_THROW(Curve({exact(1, nan)}), Error);
  EXPECT_THROW(Curve({{1, 2, 3, 4}}), Error);
  EXPECT_THROW(Curve({{1, 2, 1, 1.5}}), Error);
  EXPECT_THROW(Curve({{1, 2, 1, inf}}), Error);
}

TEST(Curve, EnvelopesAreMonotoneAndOrderedEverywhere) {
  constexpr std::uint64_t seed = 7009;
  SCOPED_TRACE(seed);
  std::mt19937_64 engine(seed);
  for (int round = 0; round < 250; ++round) {
    std::vector<CurvePoint> points;
    double bytes = uniform_unit(engine) < 0.2 ? 0 : 8;
    const std::size_t n = 1 + uniform_index(engine, 20);
    for (std::size_t i = 0; i < n; ++i) {
      const double mid = std::exp(6 * uniform_unit(engine) - 12);
      points.push_back(
          {bytes, mid, mid * (0.3 + 0.7 * uniform_unit(engine)), mid * (1 + uniform_unit(engine))});
      bytes += 1 + std::floor(1e5 * uniform_unit(engine));
    }
    const Curve curve(points, Curve::Shape::non_decreasing);
    double before = 0;
    for (int step = 0; step <= 200; ++step) {
      const double s = bytes * 1.5 * step / 200;
      const double t = curve.seconds_at(s);
      ASSERT_GE(t, before * (1 - 1e-12)) << "round " << round << " at " << s;
      ASSERT_LE(curve.seconds_at(s, Estimate::lo), t * (1 + 1e-12));
      ASSERT_GE(curve.seconds_at(s, Estimate::hi), t * (1 - 1e-12));
      before = t;
    }
  }
}

} // namespace
} // namespace reckon
