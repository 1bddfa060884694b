// SPDX-License-Identifier: Apache-2.0
#include "stats/rank_test.hpp"

#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace reckon {
namespace {

using Samples = std::vector<double>;

TEST(RankTest, CompleteSeparationHasTheSmallestValue) {
  // 2 of the C(8,4) = 70 orders are as extreme.
  const auto p = rank_test(Samples{1, 2, 3, 4}, Samples{5, 6, 7, 8});
  ASSERT_TRUE(p.has_value());
  EXPECT_DOUBLE_EQ(*p, 2.0 / 70);
}

TEST(RankTest, CountsTheOrdersThatAreAsExtreme) {
  // Ranks of a: 1, 2, 3, 5, sum 11. Sums <= 11 of 4 out of 8: {1,2,3,4} = 10, {1,2,3,5} = 11. p = 2
  // * 2 / 70.
  EXPECT_DOUBLE_EQ(*rank_test(Samples{1, 2, 3, 5}, Samples{4, 6, 7, 8}), 4.0 / 70);
}

TEST(RankTest, ExactValueCountsTies) {
  // Values 1 1 2 2 2 2 3 3, mid-ranks 1.5 1.5 4.5 4.5 4.5 4.5 7.5 7.5; a = {1, 1, 2, 2} has sum 12,
  // the least there is: 4 C 2 = 6 choices of the two twos. p = 2 * 6 / 70.
  EXPECT_DOUBLE_EQ(*rank_test(Samples{1, 1, 2, 2}, Samples{2, 2, 3, 3}), 12.0 / 70);
}

TEST(RankTest, SaysWhenThereAreTooFewSamples) {
  // 3 + 3: 2 / 20 = 0.1 is above 0.05 for any samples. 3 + 5: 2 / 56 = 0.0357 can reach it.
  EXPECT_FALSE(rank_test(Samples{1, 2, 3}, Samples{7, 8, 9}).has_value());
  EXPECT_TRUE(rank_test(Samples{1, 2, 3}, Samples{7, 8, 9}, 0.1).has_value());
  EXPECT_DOUBLE_EQ(*rank_test(Samples{1, 2, 3}, Samples{5, 6, 7, 8, 9}), 2.0 / 56);
  EXPECT_FALSE(rank_test(Samples{}, Samples{1, 2, 3, 4}).has_value());
  // 1 + 39: 2 / 40 = 0.05 just reaches it; 1 + 38 does not.
  EXPECT_FALSE(rank_test(Samples{0}, Samples(38, 1.0)).has_value());
  EXPECT_TRUE(rank_test(Samples{0}, Samples(39, 1.0)).has_value());
}

TEST(RankTest, EqualSamplesGiveOne) {
  EXPECT_DOUBLE_EQ(*rank_test(Samples(5, 2.0), Samples(6, 2.0)), 1);
  EXPECT_DOUBLE_EQ(*rank_test(Samples(50, 2.0), Samples(60, 2.0)), 1);
}

TEST(RankTest, LargeSetsUseTheNormalApproximation) {
  // a = 1..30, b = 31..60: U = 0, mean 450, variance 30 * 30 * 61 / 12 = 4575, z = 449.5 / 67.639
  // = 6.6456.
  Samples a;
  Samples b;
  for (int i = 1; i <= 30; ++i) {
    a.push_back(i);
    b.push_back(i + 30);
  }
  EXPECT_NEAR(*rank_test(a, b), std::erfc(449.5 / std::sqrt(2 * 4575.0)), 1e-16);
}

TEST(RankTest, TieCorrectionOfLargeSets) {
  // 30 zeros and 10 ones against 20 zeros and 20 ones. Ties t = 50 and 30, n = 80: sum t^3 - t =
  // 124950 + 26970. Rank of a zero 25.5, of a one 65.5: rank sum of a = 30 * 25.5 + 10 * 65.5 =
  // 1420, U = 1420 - 820 = 600, mean 800, variance = 1600 / 12 * (81 - 151920 / 6320) = 7594.9367.
  Samples a(30, 0.0);
  a.insert(a.end(), 10, 1.0);
  Samples b(20, 0.0);
  b.insert(b.end(), 20, 1.0);
  const double variance = 1600.0 / 12 * (81 - 151920.0 / 6320);
  EXPECT_NEAR(*rank_test(a, b), std::erfc(199.5 / std::sqrt(2 * variance)), 1e-12);
}

/// Of all ways to choose m of the ranks 1 to m + n, twice the part whose sum is at most `sum`.
double exact_p(std::size_t m, std::size_t n, std::size_t sum) {
  std::vector<std::vector<double>> ways(m + 1, std::vector<double>((m + n) * m + 1, 0.0));
  ways[0][0] = 1; // [chosen][their sum]
  for (std::size_t rank = 1; rank <= m + n; ++rank) {
    for (std::size_t chosen = m; chosen > 0; --chosen) {
      for (std::size_t s = ways[chosen].size(); s-- > rank;) {
        ways[chosen][s] += ways[chosen - 1][s - rank];
      }
    }
  }
  const auto upto = ways[m].begin() + static_cast<std::ptrdiff_t>(sum) + 1;
  return std::min(1.0, 2 * std::accumulate(ways[m].begin(), upto, 0.0) /
                           std::accumulate(ways[m].begin(), ways[m].end(), 0.0));
}

TEST(RankTest, OfTwentyAndTwentyIsExactAndOfOneMoreTheApproximation) {
  test::for_cases(7004, 20, [](test::Random& random) {
    Samples a(20);
    Samples b(20);
    for (double& x : a) {
      x = random.uniform(0, 1);
    }
    for (double& x : b) {
      x = random.uniform(0, 1) + 0.2;
    }
    std::size_t lower = 0; // pairs in which a is above b: U, the sum of a's ranks less 1 + ... + 20
    for (const double x : a) {
      lower += static_cast<std::size_t>(
          std::count_if(b.begin(), b.end(), [&](double y) { return y < x; }));
    }
    const std::size_t least = std::min(lower, 400 - lower);
    EXPECT_NEAR(*rank_test(a, b), exact_p(20, 20, 210 + least), 1e-12);
    a.push_back(2); // above all: U of 21 x 20 grows by 20; mean 210, variance 21 * 20 * 42 / 12
    const double from_mean = std::abs(static_cast<double>(lower) + 20 - 210) - 0.5;
    EXPECT_NEAR(*rank_test(a, b), std::erfc(std::max(0.0, from_mean) / std::sqrt(2 * 1470.0)),
                1e-12);
  });
}

TEST(RankTest, IsSymmetricAndBlindToMonotoneChanges) {
  test::for_cases(7005, 200, [](test::Random& random) {
    Samples a(4 + random.below(30));
    Samples b(4 + random.below(30));
    for (Samples* s : {&a, &b}) {
      for (double& x : *s) {
        x = static_cast<double>(1 + random.below(12)); // many ties
      }
    }
    const double p = *rank_test(a, b);
    ASSERT_GT(p, 0);
    ASSERT_LE(p, 1);
    ASSERT_NEAR(*rank_test(b, a), p, 1e-12);
    for (Samples* s : {&a, &b}) {
      for (double& x : *s) {
        x = std::exp(x);
      }
    }
    ASSERT_EQ(*rank_test(a, b), p);
  });
}

TEST(RankTest, ManySetsMayBeComparedWithOneThatIsSortedOnce) {
  test::for_cases(7006, 100, [](test::Random& random) {
    Samples b(4 + random.below(60));
    std::ranges::generate(b, [&] { return static_cast<double>(random.below(9)); });
    const RankedSamples ranked(b);
    for (int set = 0; set < 5; ++set) {
      Samples a(4 + random.below(30));
      std::ranges::generate(a, [&] { return static_cast<double>(random.below(9)); });
      ASSERT_EQ(rank_test(a, ranked), rank_test(a, b));
      ASSERT_NEAR(*rank_test(a, ranked), *rank_test(b, RankedSamples(a)), 1e-12);
    }
  });
}

TEST(RankTest, FalseAlarmsStayBelowAlpha) {
  int alarms = 0;
  test::for_cases(7006, 2000, [&](test::Random& random) {
    Samples a(10);
    Samples b(12);
    for (Samples* s : {&a, &b}) {
      for (double& x : *s) {
        x = random.uniform(0, 1);
      }
    }
    alarms += *rank_test(a, b) <= 0.05 ? 1 : 0;
  });
  // At most 5 % of 2000 = 100, standard deviation 9.7; three of them above.
  EXPECT_LE(alarms, 130);
  EXPECT_GE(alarms, 40); // and not blind
}

TEST(RankTest, RefusesNotANumber) {
  EXPECT_ERROR(rank_test(Samples{1, 2, 3, std::nan("")}, Samples{1, 2, 3, 4}));
}

} // namespace
} // namespace reckon
