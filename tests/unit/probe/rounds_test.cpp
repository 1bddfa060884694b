// SPDX-License-Identifier: Apache-2.0
#include "probe/rounds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace reckon {
namespace {

std::set<int> touched(const Pairing& pairs) {
  std::set<int> ranks;
  for (const auto& [a, b] : pairs) {
    ranks.insert(a);
    ranks.insert(b);
  }
  return ranks;
}

TEST(RoundRobin, MeetsEveryPairOnceInDisjointRounds) {
  for (int n = 2; n <= 33; ++n) {
    SCOPED_TRACE(n);
    const std::vector<Pairing> rounds = round_robin(n);
    // n - 1 rounds of n / 2 pairs, or n of (n - 1) / 2: either way n (n - 1) / 2 pairs.
    EXPECT_EQ(rounds.size(), static_cast<std::size_t>(n % 2 == 0 ? n - 1 : n));
    std::set<std::pair<int, int>> met;
    for (const Pairing& round : rounds) {
      EXPECT_EQ(round.size(), static_cast<std::size_t>(n / 2));
      EXPECT_EQ(touched(round).size(), 2 * round.size()) << "a rank is in two pairs of a round";
      for (const auto& [a, b] : round) {
        EXPECT_LT(a, b);
        EXPECT_GE(a, 0);
        EXPECT_LT(b, n);
        EXPECT_TRUE(met.emplace(a, b).second) << a << " and " << b << " meet twice";
      }
    }
    EXPECT_EQ(met.size(), static_cast<std::size_t>(n * (n - 1) / 2));
  }
}

TEST(Halves, AreDisjointAndFaceEachOther) {
  EXPECT_EQ(halves_of({0, 1, 2, 3}), (Pairing{{0, 2}, {1, 3}}));
  EXPECT_EQ(halves_of({4, 0, 3, 1, 2}), (Pairing{{4, 1}, {0, 2}})); // rank 3, in the middle, rests
}

TEST(Shuffled, IsAPermutationThatDependsOnTheSeedOnly) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 first(seed), second(seed);
    std::vector<int> order = shuffled(17, first);
    EXPECT_EQ(order, shuffled(17, second));
    std::sort(order.begin(), order.end());
    std::vector<int> all(17);
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
}

TEST(Waves, KeepEachHostFromHavingTooMuchToDo) {
  // Ranks 0 to 3 on one computer, 4 and 5 on computers of their own. One pair at a time on each.
  const std::vector<int> host{0, 0, 0, 0, 4, 5};
  const Pairing pairs{{0, 1}, {2, 3}, {4, 5}};
  EXPECT_EQ(waves_of(pairs, host, 1), (std::vector<Pairing>{{{0, 1}, {4, 5}}, {{2, 3}}}));
  EXPECT_EQ(waves_of(pairs, host, 2), (std::vector<Pairing>{pairs}));
  // A pair between two computers keeps both busy, whichever is named first.
  EXPECT_EQ(waves_of({{4, 0}, {5, 1}}, host, 1), (std::vector<Pairing>{{{4, 0}}, {{5, 1}}}));
  EXPECT_EQ(waves_of({{0, 4}, {1, 5}}, host, 1), (std::vector<Pairing>{{{0, 4}}, {{1, 5}}}));
}

TEST(Stars, HoldEveryRankOnceAndAreAboutEqual) {
  for (int n = 1; n <= 40; ++n) {
    SCOPED_TRACE(n);
    std::vector<int> ranks(static_cast<std::size_t>(n));
    std::iota(ranks.begin(), ranks.end(), 100);
    std::vector<int> seen;
    std::size_t least = 1000, most = 0;
    for (const std::vector<int>& star : stars_of(ranks, 4)) {
      least = std::min(least, star.size());
      most = std::max(most, star.size());
      seen.insert(seen.end(), star.begin(), star.end());
    }
    EXPECT_EQ(seen, ranks);
    EXPECT_LE(most - least, 1U);
    EXPECT_LT(most, 8U) << "the number of rounds must not grow with that of the ranks";
    if (n >= 4) {
      EXPECT_GE(least, 4U);
    }
  }
}

} // namespace
} // namespace reckon
