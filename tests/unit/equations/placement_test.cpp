// SPDX-License-Identifier: Apache-2.0
#include "equations/placement.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace reckon {
namespace {

using Loads = std::vector<std::uint64_t>;

TEST(LongestFirst, PlacesByHand) {
  // 7 -> 0, 5 -> 1, 4 -> 1 (5 < 7: 9), 3 -> 0 (7 < 9: 10), 3 -> 1 (9 < 10: 12), 2 -> 0 (10 < 12:
  // 12).
  const Balance balance = balance_longest_first({3, 7, 2, 5, 4, 3}, 2);
  EXPECT_EQ(balance.loads, (Loads{12, 12}));
  EXPECT_EQ(balance.bin_of, (std::vector<std::size_t>{0, 0, 0, 1, 1, 1}));
}

TEST(LongestFirst, IsWithinGrahamsBoundWhereItIsReached) {
  // Graham's example for 2 bins: 3 3 2 2 2. Best is 6 and 6, longest first gives 7: 4/3 - 1/6 =
  // 7/6.
  EXPECT_EQ(balance_longest_first({3, 3, 2, 2, 2}, 2).loads, (Loads{7, 5}));
}

TEST(LongestFirst, SortsByTheLoadOfTheItemItPlaces) {
  // PF11: a partitioner that adds the load of another item than the one it places would pile these
  // up.
  EXPECT_EQ(balance_longest_first({1, 1, 1, 9, 9, 9}, 3).loads, (Loads{10, 10, 10}));
}

TEST(LongestFirst, TiesGoToTheEarlierItemAndTheLowerBin) {
  EXPECT_EQ(balance_longest_first({5, 5, 5, 5}, 3).bin_of, (std::vector<std::size_t>{0, 1, 2, 0}));
}

TEST(BySpeed, AnItemGoesToWhereItIsDoneFirstAndOfTwoToTheLower) {
  // At 2, 1 and 2 bytes a second: 6 is done after 3, 6 and 3 s, so in bin 0; 4 after 5, 4 and 2 s;
  // 2 after 4, 2 and 3 s; 2 again after 4, 4 and 3 s.
  const Balance balance = balance_by_speed({6, 4, 2, 2}, {2, 1, 2});
  EXPECT_EQ(balance.bin_of, (std::vector<std::size_t>{0, 2, 1, 2}));
  EXPECT_EQ(balance.loads, (Loads{6, 2, 6}));
}

TEST(LongestFirst, TiesStayInOrderAmongManyItems) {
  const Balance balance = balance_longest_first(Loads(1000, 7), 3);
  for (std::size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(balance.bin_of[i], i % 3);
  }
}

TEST(LongestFirst, FewItemsManyBins) {
  EXPECT_EQ(balance_longest_first({4, 6}, 4).loads, (Loads{6, 4, 0, 0}));
  EXPECT_EQ(balance_longest_first({}, 2).loads, (Loads{0, 0}));
  EXPECT_EQ(balance_longest_first({0, 0, 3}, 1).loads, (Loads{3}));
}

TEST(LongestFirst, RefusesNoBinsAndOverflow) {
  EXPECT_ERROR(balance_longest_first({1}, 0));
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(balance_longest_first({most - 1, 1}, 1).loads, (Loads{most}));
  EXPECT_ERROR(balance_longest_first({most, 1}, 2));
}

TEST(MaxOverMean, OfLoads) {
  EXPECT_DOUBLE_EQ(max_over_mean({6, 2}), 1.5);
  EXPECT_DOUBLE_EQ(max_over_mean({4, 4, 4}), 1.0);
  EXPECT_DOUBLE_EQ(max_over_mean({5, 0, 0, 0}), 4.0);
  EXPECT_EQ(max_over_mean({}), 1.0);
  EXPECT_EQ(max_over_mean({0, 0}), 1.0);
}

TEST(Chunks, FollowPHubsRule) {
  const auto cut = [](std::uint64_t bytes, std::uint64_t chunk) {
    const Chunks c = cut_into_chunks(bytes, chunk);
    return std::vector<std::uint64_t>{c.count, c.full_bytes, c.last_bytes};
  };
  EXPECT_EQ(cut(100, 32), (Loads{4, 32, 4}));
  EXPECT_EQ(cut(96, 32), (Loads{3, 32, 32})); // no empty last piece
  EXPECT_EQ(cut(32, 32), (Loads{1, 32, 32}));
  EXPECT_EQ(cut(33, 32), (Loads{2, 32, 1}));
  EXPECT_EQ(cut(5, 32), (Loads{1, 5, 5}));
  EXPECT_EQ(cut(0, 32), (Loads{0, 0, 0}));
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(cut(most, most), (Loads{1, most, most}));
  EXPECT_EQ(cut(most, 1U << 31U), (Loads{std::uint64_t{1} << 33U, 1U << 31U, (1U << 31U) - 1}));
  EXPECT_ERROR(cut_into_chunks(1, 0));
}

TEST(Pieces, AreThoseOfAllKeysInOrder) {
  EXPECT_EQ(cut_into_pieces(Loads{20, 0, 8}, 8), (Loads{8, 8, 4, 8}));
}

TEST(Pieces, AreNoMoreThanTheMemoryHolds) {
  EXPECT_FALSE(cut_into_pieces(Loads{k_most_pieces + 1}, 1));
  EXPECT_FALSE(cut_into_pieces(Loads{2 * (k_most_pieces - 1), 4}, 2)); // together one too many
}

} // namespace
} // namespace reckon
