// SPDX-License-Identifier: Apache-2.0
#include "stats/curve.hpp"

#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace reckon {
namespace {

TEST(Curve, PassesThroughItsSamplesAndIsLinearBetween) {
  const Curve curve({{100, 2}, {300, 6}});
  EXPECT_EQ(curve.seconds_at(100), 2);
  EXPECT_EQ(curve.seconds_at(300), 6);
  EXPECT_EQ(curve.seconds_at(150), 3); // a quarter of the way from 2 to 6
  EXPECT_EQ(curve.bandwidth_at(150).as_bytes_per_s(), 50);
}

TEST(Curve, BelowTheFirstSampleKeepsItsTime) {
  const Curve curve({{64, 3}, {128, 4}});
  EXPECT_EQ(curve.seconds_at(63), 3);
  EXPECT_EQ(curve.seconds_at(0), 3);
}

TEST(Curve, BeyondTheLastSampleGrowsAtTheMarginalRateOfTheLastOctave) {
  // Last octave: from 500 (the largest sample at or below 1000 / 2) to 1000, 3 s for 500 bytes. The
  // wobble at 900 does not count.
  const Curve curve({{10, 1}, {500, 2}, {900, 4.9}, {1000, 5}});
  EXPECT_DOUBLE_EQ(curve.seconds_at(2000), 5 + 1000 * 3.0 / 500);
  EXPECT_DOUBLE_EQ(curve.marginal_bandwidth().as_bytes_per_s(), 500.0 / 3);
}

TEST(Curve, ALastOctaveThatGetsFasterIsNoiseAndTheMeanRateIsUsed) {
  const Curve curve({{100, 5}, {200, 4}});
  EXPECT_DOUBLE_EQ(curve.seconds_at(400), 4 + 200 * 4.0 / 200);
}

TEST(Curve, OneSampleIsALatencyAndAMeanRate) {
  const Curve curve({{100, 5}});
  EXPECT_EQ(curve.seconds_at(1), 5);
  EXPECT_DOUBLE_EQ(curve.seconds_at(300), 15);
  const Curve latency({{0, 5}});
  EXPECT_EQ(latency.seconds_at(1e9), 5);
}

TEST(Curve, EnvelopeNeverDecreasesAndLeavesGoodCurvesAlone) {
  const std::vector<CurvePoint> points{{1, 3}, {2, 2}, {4, 5}};
  const Curve raised(points, Curve::Shape::non_decreasing);
  EXPECT_EQ(raised.seconds_at(2), 3);
  EXPECT_EQ(raised.seconds_at(4), 5);
  EXPECT_EQ(Curve(points).seconds_at(2), 2);
}

TEST(Curve, RefusesPointsThatAreNotACurve) {
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  using Points = std::vector<CurvePoint>;
  for (const Points& bad :
       {Points{}, Points{{2, 1}, {2, 2}}, Points{{2, 1}, {1, 2}}, Points{{-1, 1}}, Points{{nan, 1}},
        Points{{inf, 1}}, Points{{1, 0}}, Points{{1, -1}}, Points{{1, nan}}, Points{{1, inf}}}) {
    EXPECT_ERROR(Curve(bad));
  }
}

TEST(Curve, EnvelopesAreMonotoneEverywhere) {
  test::for_cases(7009, 250, [](test::Random& random) {
    std::vector<CurvePoint> points;
    double bytes = random.uniform(0, 1) < 0.2 ? 0 : 8;
    const std::size_t n = 1 + random.below(20);
    for (std::size_t i = 0; i < n; ++i) {
      points.push_back({bytes, std::exp(6 * random.uniform(0, 1) - 12)});
      bytes += 1 + std::floor(1e5 * random.uniform(0, 1));
    }
    const Curve curve(points, Curve::Shape::non_decreasing);
    double before = 0;
    for (int step = 0; step <= 200; ++step) {
      const double s = bytes * 1.5 * step / 200;
      const double t = curve.seconds_at(s);
      ASSERT_GE(t, before * (1 - 1e-12)) << s;
      before = t;
    }
  });
}

} // namespace
} // namespace reckon
