// SPDX-License-Identifier: Apache-2.0
#include "probe/curve.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace reckon {
namespace {

using Curve = std::function<double(double)>;

std::map<std::uint64_t, CurveSample> powers(const Curve& time, double spread = 0) {
  std::map<std::uint64_t, CurveSample> measured;
  for (std::uint64_t bytes = 8; bytes <= (1U << 28U); bytes *= 2) {
    measured[bytes] = {time(static_cast<double>(bytes)), spread};
  }
  return measured;
}

/// Measures what is asked for until nothing more is; returns how many sizes that took.
std::size_t refine(std::map<std::uint64_t, CurveSample>& measured, const Curve& time) {
  std::size_t taken = 0;
  for (int round = 0; round < 100; ++round) {
    const std::vector<std::uint64_t> sizes = refine_sizes(measured);
    if (sizes.empty()) {
      return taken;
    }
    for (const std::uint64_t bytes : sizes) {
      EXPECT_FALSE(measured.contains(bytes)) << bytes << " again";
      EXPECT_EQ(bytes % (bytes < 128 ? 8 : 64), 0U) << bytes;
      measured[bytes] = {time(static_cast<double>(bytes)), 0};
      ++taken;
    }
  }
  ADD_FAILURE() << "never ends";
  return taken;
}

TEST(RefineSizes, AStraightLineNeedsNothing) {
  EXPECT_TRUE(refine_sizes(powers([](double s) { return 1e-6 + s / 10e9; })).empty());
}

TEST(RefineSizes, FindsAStep) {
  // A protocol switch at 10 000 B: from there on everything takes 20 us more.
  const Curve time = [](double s) { return 1e-6 + s / 10e9 + (s >= 10'000 ? 20e-6 : 0); };
  auto measured = powers(time);
  const std::size_t taken = refine(measured, time);
  EXPECT_GT(taken, 2U);
  EXPECT_LT(taken, 30U);
  // The step lies between two neighbours that are as near as sizes may be: less than 1.2 apart.
  const auto above = measured.lower_bound(10'000);
  const auto below = std::prev(above);
  EXPECT_LT(static_cast<double>(above->first) / static_cast<double>(below->first), 1.2)
      << below->first << " " << above->first;
}

TEST(RefineSizes, FindsAKneeOfTheRate) {
  // Twice as slow per byte beyond 3 MB, as when a cache ends.
  const Curve time = [](double s) {
    return s <= 3e6 ? 1e-8 + s / 40e9 : 1e-8 + 3e6 / 40e9 + (s - 3e6) / 8e9;
  };
  auto measured = powers(time);
  refine(measured, time);
  std::size_t near = 0;
  for (const auto& [bytes, sample] : measured) {
    near += bytes > (2U << 20U) && bytes < (6U << 20U) ? 1U : 0U;
  }
  EXPECT_GE(near, 3U); // 4 MiB alone was there before
}

TEST(RefineSizes, NoiseIsNoBend) {
  auto measured = powers([](double s) { return 1e-6 + s / 10e9; });
  measured[1 << 20U].seconds *= 1.3;
  EXPECT_FALSE(refine_sizes(measured).empty()); // certain samples: a bend
  measured[1 << 20U].spread = 0.2;              // but not when that size varies by a fifth
  EXPECT_TRUE(refine_sizes(measured).empty());
}

TEST(RefineSizes, TheLargestBendComesFirst) {
  const Curve time = [](double s) {
    return 1e-6 + s / 10e9 + (s >= 1000 ? 1e-6 : 0) + (s >= 1e6 ? 10e-3 : 0);
  };
  const std::vector<std::uint64_t> sizes = refine_sizes(powers(time));
  ASSERT_FALSE(sizes.empty());
  EXPECT_GT(sizes[0], 400'000U);
  EXPECT_LT(sizes[0], 3'000'000U);
}

TEST(RefineSizes, TooFewPointsSayNothing) {
  EXPECT_TRUE(refine_sizes({}).empty());
  EXPECT_TRUE(refine_sizes({{8, {1, 0}}, {16, {9, 0}}}).empty());
}

TEST(RefineSizesProperty, AlwaysEndsAndNeverRepeats) {
  constexpr std::uint64_t k_seed = 20260403;
  std::mt19937_64 engine(k_seed);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << k_seed << " round " << round);
    // Any positive values: the worst that a disturbed machine can give.
    std::map<std::uint64_t, double> drawn;
    const Curve time = [&](double s) {
      return drawn.try_emplace(static_cast<std::uint64_t>(s), std::exp(10 * unit(engine)))
          .first->second;
    };
    auto measured = powers(time);
    // At most 8 sizes an octave, 25 octaves.
    EXPECT_LE(refine(measured, time), 200U);
  }
}

} // namespace
} // namespace reckon
