// SPDX-License-Identifier: Apache-2.0
#include "equations/placement.hpp"

#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace reckon {
namespace {

constexpr std::uint64_t k_seed = 20180215;
constexpr int k_cases = 400;

using Loads = std::vector<std::uint64_t>;
using test::Random;

std::uint64_t sum(const Loads& loads) {
  return std::accumulate(loads.begin(), loads.end(), std::uint64_t{0});
}
std::uint64_t most(const Loads& loads) {
  return *std::max_element(loads.begin(), loads.end());
}

template <class Check>
void for_loads(std::size_t most_items, std::size_t most_bins, Check check) {
  test::for_cases(k_seed, k_cases, [&](Random& random) {
    Loads loads(1 + random() % most_items);
    const std::uint64_t range = std::uint64_t{1}
                                << (1 + random() % 30); // small ranges have many ties
    std::generate(loads.begin(), loads.end(), [&] { return random() % range; });
    const std::size_t bins = 1 + random() % most_bins;
    SCOPED_TRACE(testing::PrintToString(loads) + " in " + std::to_string(bins));
    check(loads, bins, random);
  });
}

/// The least fullest bin over all placements of loads[item...].
std::uint64_t best(const Loads& loads, std::size_t item, Loads& bins, std::uint64_t bound) {
  if (item == loads.size()) {
    return std::min(bound, most(bins));
  }
  for (std::size_t b = 0; b < bins.size(); ++b) {
    if (b > 0 && bins[b] == bins[b - 1]) {
      continue;
    }
    bins[b] += loads[item];
    if (bins[b] < bound) {
      bound = best(loads, item + 1, bins, bound);
    }
    bins[b] -= loads[item];
  }
  return bound;
}

TEST(LongestFirstProperty, EveryItemIsInOneBinAndTheLoadsAreTheirSums) {
  for_loads(300, 40, [](const Loads& loads, std::size_t bins, Random&) {
    const Balance balance = balance_longest_first(loads, bins);
    ASSERT_EQ(balance.bin_of.size(), loads.size());
    ASSERT_EQ(balance.loads.size(), bins);
    Loads counted(bins, 0);
    for (std::size_t i = 0; i < loads.size(); ++i) {
      ASSERT_LT(balance.bin_of[i], bins);
      counted[balance.bin_of[i]] += loads[i];
    }
    EXPECT_EQ(counted, balance.loads);
  });
}

TEST(LongestFirstProperty, TheFullestBinIsWithinTheBoundOfTheLargestItem) {
  // bins * fullest <= sum + (bins - 1) * largest: when the last item fell into the fullest bin, all
  // others were as full.
  for_loads(300, 40, [](const Loads& loads, std::size_t bins, Random&) {
    EXPECT_LE(bins * most(balance_longest_first(loads, bins).loads),
              sum(loads) + (bins - 1) * most(loads));
  });
}

TEST(LongestFirstProperty, IsWithinGrahamsFactorOfTheBest) {
  for_loads(9, 4, [](const Loads& loads, std::size_t bins, Random&) {
    Loads empty(bins, 0);
    const std::uint64_t optimum = best(loads, 0, empty, sum(loads) + 1);
    const std::uint64_t fullest = most(balance_longest_first(loads, bins).loads);
    EXPECT_GE(fullest, optimum);
    EXPECT_LE(3 * bins * fullest, (4 * bins - 1) * optimum); // 4/3 - 1/(3 bins)
  });
}

TEST(LongestFirstProperty, TheOrderOfTheItemsDoesNotChangeTheLoads) {
  for_loads(200, 20, [](const Loads& loads, std::size_t bins, Random& random) {
    Loads shuffled = loads;
    std::shuffle(shuffled.begin(), shuffled.end(), random);
    EXPECT_EQ(balance_longest_first(shuffled, bins).loads,
              balance_longest_first(loads, bins).loads);
  });
}

TEST(LongestFirstProperty, MaxOverMeanIsAtLeastOneAndAtMostTheBins) {
  for_loads(200, 20, [](const Loads& loads, std::size_t bins, Random&) {
    const double ratio = max_over_mean(balance_longest_first(loads, bins).loads);
    EXPECT_GE(ratio, 1 - 1e-12);
    EXPECT_LE(ratio, static_cast<double>(bins) * (1 + 1e-12));
  });
}

TEST(ChunksProperty, AddUpToTheKeyAndOnlyTheLastIsShorter) {
  test::for_cases(k_seed, k_cases, [](Random& random) {
    const std::uint64_t bytes = random() >> (random() % 64);
    const std::uint64_t chunk = 1 + (random() >> (random() % 64)) / 2;
    SCOPED_TRACE(testing::Message() << bytes << " in " << chunk);
    const Chunks chunks = cut_into_chunks(bytes, chunk);
    if (bytes == 0) {
      EXPECT_EQ(chunks.count, 0U);
      return;
    }
    EXPECT_EQ((chunks.count - 1) * chunks.full_bytes + chunks.last_bytes, bytes);
    EXPECT_GE(chunks.last_bytes, 1U);
    EXPECT_LE(chunks.last_bytes, chunks.full_bytes);
    EXPECT_LE(chunks.full_bytes, chunk);
    EXPECT_EQ(chunks.full_bytes, chunks.count > 1 ? chunk : bytes);
  });
}

} // namespace
} // namespace reckon
