// SPDX-License-Identifier: Apache-2.0
#include "stats/fit.hpp"

#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace reckon {
namespace {

/// Sizes from `from` up, `per_octave` a doubling, rounded to 8 bytes.
std::vector<double> sizes(double from, double to, int per_octave) {
  std::vector<double> result;
  for (int i = 0;; ++i) {
    const double s = std::round(from * std::exp2(static_cast<double>(i) / per_octave) / 8) * 8;
    if (s > to) {
      return result;
    }
    if (result.empty() || s > result.back()) {
      result.push_back(s);
    }
  }
}

FitPoint on_line(double bytes, double alpha, double beta) {
  return {bytes, alpha + bytes / beta, 0};
}

TEST(Fit, RecoversOneLineExactly) {
  // T = 2 us + s / 12.5 GB/s over 8 B .. 256 MiB.
  std::vector<FitPoint> points;
  for (const double s : sizes(8, 268435456, 2)) {
    points.push_back(on_line(s, 2e-6, 12.5e9));
  }
  const AlphaBetaFit fit = fit_alpha_beta(points);
  ASSERT_EQ(fit.segments.size(), 1U);
  const Segment& s = fit.segments[0];
  EXPECT_NEAR(s.alpha_seconds, 2e-6, 2e-6 * 1e-9);
  EXPECT_NEAR(s.bandwidth_bytes_per_second, 12.5e9, 12.5);
  EXPECT_LT(s.relative_residual, 1e-9);
  EXPECT_EQ(s.from_bytes, 8);
  EXPECT_EQ(s.to_bytes, 268435456);
  EXPECT_FALSE(s.flat);
  EXPECT_TRUE(fit.outliers.empty());
}

TEST(Fit, FindsAPlantedProtocolSwitch) {
  // Eager up to 8 KiB, then rendezvous: more start-up, more rate.
  std::vector<FitPoint> points;
  for (const double s : sizes(64, 16777216, 2)) {
    points.push_back(s <= 8192 ? on_line(s, 1e-6, 2e9) : on_line(s, 6e-6, 11e9));
  }
  const AlphaBetaFit fit = fit_alpha_beta(points);
  ASSERT_EQ(fit.segments.size(), 2U);
  EXPECT_EQ(fit.segments[0].to_bytes, 8192);
  EXPECT_GT(fit.segments[1].from_bytes, 8192);
  EXPECT_NEAR(fit.segments[0].alpha_seconds, 1e-6, 1e-13);
  EXPECT_NEAR(fit.segments[0].bandwidth_bytes_per_second, 2e9, 10);
  EXPECT_NEAR(fit.segments[1].alpha_seconds, 6e-6, 1e-13);
  EXPECT_NEAR(fit.segments[1].bandwidth_bytes_per_second, 11e9, 100);
}

TEST(Fit, FindsThreeSegmentsInNoise) {
  int found = 0;
  test::for_cases(7010, 20, [&](test::Random& random) {
    std::vector<FitPoint> points;
    for (const double s : sizes(64, 67108864, 4)) {
      FitPoint p = s <= 4096     ? on_line(s, 1e-6, 1e9)
                   : s <= 524288 ? on_line(s, 8e-6, 6e9)
                                 : on_line(s, 60e-6, 12e9);
      p.seconds *= random.uniform(0.985, 1.015);
      p.mad = 0.01 * p.seconds;
      points.push_back(p);
    }
    const AlphaBetaFit fit = fit_alpha_beta(points);
    if (fit.segments.size() == 3) {
      ++found;
      EXPECT_NEAR(fit.segments[0].alpha_seconds, 1e-6, 0.03e-6);
      EXPECT_NEAR(fit.segments[1].bandwidth_bytes_per_second, 6e9, 0.3e9);
      EXPECT_NEAR(fit.segments[2].bandwidth_bytes_per_second, 12e9, 0.6e9);
      EXPECT_LT(fit.segments[2].relative_residual, 0.015);
    }
  });
  EXPECT_GE(found, 19);
}

TEST(Fit, DoesNotInventSegmentsOutOfNoise) {
  int single = 0;
  test::for_cases(7011, 20, [&](test::Random& random) {
    std::vector<FitPoint> points;
    for (const double s : sizes(64, 67108864, 4)) {
      FitPoint p = on_line(s, 5e-6, 10e9);
      p.seconds *= random.uniform(0.96, 1.04); // sigma 2.3 %
      points.push_back(p);
    }
    single += fit_alpha_beta(points).segments.size() == 1 ? 1 : 0;
  });
  EXPECT_GE(single, 18);
}

TEST(Fit, LeavesOutliersOutButNotTooMany) {
  std::vector<FitPoint> points;
  for (const double s : sizes(1024, 33554432, 2)) {
    points.push_back(on_line(s, 3e-6, 10e9));
  }
  ASSERT_EQ(points.size(), 31U); // 15 octaves, both ends
  points[5].seconds *= 3;
  points[20].seconds *= 2;
  points[30].seconds *= 1.5; // at the end, where it has the most pull
  const AlphaBetaFit fit = fit_alpha_beta(points);
  ASSERT_EQ(fit.segments.size(), 1U);
  EXPECT_EQ(fit.outliers, (std::vector<std::size_t>{5, 20, 30}));
  EXPECT_NEAR(fit.segments[0].alpha_seconds, 3e-6, 3e-12);
  EXPECT_NEAR(fit.segments[0].bandwidth_bytes_per_second, 10e9, 1e4);

  FitOptions none{.most_outliers = 0};
  EXPECT_TRUE(fit_alpha_beta(points, none).outliers.empty());
}

TEST(Fit, LeavesOutAnOutlierThatPullsTheLineToItself) {
  // Six sizes near each other and one far away: the line passes close by that one whatever its
  // time.
  std::vector<FitPoint> points;
  for (int i = 0; i < 6; ++i) {
    points.push_back(on_line(1e6 + 1e5 * i, 1e-3, 1e9));
  }
  points.push_back(on_line(20e6, 1e-3, 1e9));
  points.back().seconds *= 1.5;
  FitOptions one;
  one.most_segments = 1;
  EXPECT_EQ(fit_alpha_beta(points, one).outliers, std::vector<std::size_t>{6});
}

TEST(Fit, AlphaIsNeverNegative) {
  // Convex: a cache that ends. The free line through these would have a negative intercept.
  std::vector<FitPoint> points;
  for (const double s : {1e6, 2e6, 3e6, 4e6, 5e6, 6e6}) {
    points.push_back({s, s / 10e9 * (s / 1e6), 0});
  }
  FitOptions one{.most_segments = 1};
  const AlphaBetaFit fit = fit_alpha_beta(points, one);
  ASSERT_EQ(fit.segments.size(), 1U);
  EXPECT_EQ(fit.segments[0].alpha_seconds, 0);
  EXPECT_GT(fit.segments[0].bandwidth_bytes_per_second, 0);
}

TEST(Fit, TimesThatDoNotGrowAreFlatNotNegative) {
  std::vector<FitPoint> points;
  for (const double s : {8.0, 16.0, 32.0, 64.0, 128.0, 256.0}) {
    points.push_back({s, 1e-6 - s * 1e-12, 1e-8}); // slightly falling
  }
  const AlphaBetaFit fit = fit_alpha_beta(points);
  ASSERT_EQ(fit.segments.size(), 1U);
  const Segment& s = fit.segments[0];
  EXPECT_TRUE(s.flat);
  EXPECT_TRUE(std::isfinite(s.bandwidth_bytes_per_second));
  EXPECT_GT(s.bandwidth_bytes_per_second, 0);
  EXPECT_NEAR(s.alpha_seconds, 1e-6, 1e-9);
  EXPECT_LE(256 / s.bandwidth_bytes_per_second, 1.001e-12);
}

TEST(Fit, WeighsSamplesByTheirSpread) {
  // A line, and noisy samples far off it whose MAD says so: they must hardly count.
  std::vector<FitPoint> points;
  for (int i = 1; i <= 12; ++i) {
    FitPoint p = on_line(i * 1e6, 1e-5, 10e9);
    if (i % 3 == 0) {
      p.seconds *= 1.5;
      p.mad = p.seconds;
    }
    points.push_back(p);
  }
  FitOptions one{.most_segments = 1, .most_outliers = 0};
  const AlphaBetaFit fit = fit_alpha_beta(points, one);
  // Weight 1 / 1^2 against 1 / 0.02^2: 1/2500 each.
  EXPECT_NEAR(fit.segments[0].bandwidth_bytes_per_second, 10e9, 0.02e9);
}

TEST(Fit, RefusesFewerThanFivePoints) {
  std::vector<FitPoint> points;
  for (const double s : {1e3, 2e3, 3e3, 4e3}) {
    points.push_back(on_line(s, 1e-6, 1e9));
  }
  EXPECT_TRUE(fit_alpha_beta(points).segments.empty());
  points.push_back(on_line(5e3, 1e-6, 1e9));
  EXPECT_EQ(fit_alpha_beta(points).segments.size(), 1U);
  EXPECT_TRUE(fit_alpha_beta({}).segments.empty());
}

TEST(Fit, RefusesPointsOutOfRange) {
  std::vector<FitPoint> points(6, FitPoint{1, 1, 0});
  EXPECT_ERROR(fit_alpha_beta(points)); // equal sizes
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].bytes = static_cast<double>(i + 1);
  }
  EXPECT_NO_THROW((void)fit_alpha_beta(points));
  points[3].seconds = 0;
  EXPECT_ERROR(fit_alpha_beta(points));
  points[3].seconds = std::nan("");
  EXPECT_ERROR(fit_alpha_beta(points));
  points[3] = {4, 1, -1};
  EXPECT_ERROR(fit_alpha_beta(points));
}

TEST(Fit, AnyCurveGivesOrderedSegmentsThatCoverItsPoints) {
  test::for_cases(7012, 200, [](test::Random& random) {
    std::vector<FitPoint> points;
    double s = 8;
    const std::size_t n = 5 + random.below(25);
    for (std::size_t i = 0; i < n; ++i) {
      points.push_back({s, std::exp(8 * random.uniform(0, 1) - 15), 1e-7 * random.uniform(0, 1)});
      s = std::floor(s * (1.05 + 2 * random.uniform(0, 1))) + 1;
    }
    const AlphaBetaFit fit = fit_alpha_beta(points);
    ASSERT_FALSE(fit.segments.empty());
    ASSERT_EQ(fit.segments.front().from_bytes, points.front().bytes);
    ASSERT_EQ(fit.segments.back().to_bytes, points.back().bytes);
    std::size_t next = 0;
    for (const Segment& g : fit.segments) {
      ASSERT_EQ(g.from_bytes, points[next].bytes);
      while (next < n && points[next].bytes <= g.to_bytes) {
        ++next;
      }
      ASSERT_GE(g.alpha_seconds, 0);
      ASSERT_GT(g.bandwidth_bytes_per_second, 0);
      ASSERT_TRUE(std::isfinite(g.bandwidth_bytes_per_second));
      ASSERT_GE(g.relative_residual, 0);
    }
    ASSERT_EQ(next, n);
    ASSERT_LE(fit.outliers.size(), n * 15 / 100);
  });
}

TEST(Fit, TimeUnitsAndSizesOnlyScaleTheResult) {
  std::vector<FitPoint> points;
  for (const double s : sizes(64, 1048576, 3)) {
    points.push_back(s <= 2048 ? on_line(s, 1e-6, 1e9) : on_line(s, 5e-6, 4e9));
  }
  const AlphaBetaFit fit = fit_alpha_beta(points);
  for (FitPoint& p : points) {
    p.seconds *= 1000;
    p.mad *= 1000;
  }
  const AlphaBetaFit slower = fit_alpha_beta(points);
  ASSERT_EQ(fit.segments.size(), slower.segments.size());
  for (std::size_t i = 0; i < fit.segments.size(); ++i) {
    EXPECT_NEAR(slower.segments[i].alpha_seconds / fit.segments[i].alpha_seconds, 1000, 1e-3);
    EXPECT_EQ(slower.segments[i].from_bytes, fit.segments[i].from_bytes);
  }
}

TEST(Knee, IsTheSmallestSizeThatReachesTheFraction) {
  // T = 1 us + s / 1 GB/s: rate s / (1000 + s) of the limit. Best measured: 1e6 / 1.001e6 = 0.999.
  // 0.9 of it is reached from s = 8911 on, so 10000 is the first of these.
  std::vector<FitPoint> points;
  for (const double s : {1e2, 1e3, 8e3, 1e4, 1e5, 1e6}) {
    points.push_back(on_line(s, 1e-6, 1e9));
  }
  EXPECT_EQ(knee_bytes(points), 1e4);
  EXPECT_EQ(knee_bytes({}), std::nullopt);
}

} // namespace
} // namespace reckon
