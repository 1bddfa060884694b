// SPDX-License-Identifier: Apache-2.0
#include "equations/ring.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(RingSeconds, WhereAPortHasPartsEnoughItIsNeverIdle) {
  // 5 ranks, 4 parts of 1 s each: 8 steps of 4 s, and the last part is there 0.5 s later. A first
  // part is there, and added up, after 1 + 0.5 + 2 s, before the port is through with the others.
  EXPECT_DOUBLE_EQ(ring_seconds({5, 4, 4, 1, 2, 0.5}), 8 * 4 + 0.5);
}

TEST(RingSeconds, ALonePartGoesHopByHop) {
  // 5 ranks, a part each: 8 hops of 1 + 0.5 s, 4 of them with a sum of 2 s.
  EXPECT_DOUBLE_EQ(ring_seconds({5, 1, 1, 1, 2, 0.5}), 8 * 1.5 + 4 * 2);
  // Of a part for every second rank ports are idle half of the time, and hops are as long.
  EXPECT_DOUBLE_EQ(ring_seconds({5, 0.5, 0.5, 1, 2, 0.5}), 8 * 1.5 + 4 * 2);
}

TEST(RingSeconds, SumsCanBeLongerThanWritesInTheFirstHalf) {
  // 5 ranks, 4 parts of 1 s, 1.5 s to add up: 4 steps of 6 s, 4 of 4 s.
  EXPECT_DOUBLE_EQ(ring_seconds({5, 4, 6, 1, 1.5, 0.5}), 4 * 6 + 4 * 4 + 0.5);
}

TEST(RingSeconds, LatencyCanBindOneHalfAlone) {
  // 5 ranks, 4 parts of 1 s; a first part is there after 3.5 s, and added up after 5.5 s: 4 steps
  // of that, and 4 of 4 s, of which the last part is there 2.5 s later.
  EXPECT_DOUBLE_EQ(ring_seconds({5, 4, 4, 1, 2, 2.5}), 4 * 5.5 + 4 * 4 + 2.5);
}

TEST(RingSeconds, OfTwoRanksEachSendsTwice) {
  // 3 parts of 1 s each way; then, when the first is there after 1 + 4 + 1 s, as much back.
  EXPECT_DOUBLE_EQ(ring_seconds({2, 3, 3, 1, 1, 4}), 6 + 3 + 4);
}

} // namespace
} // namespace reckon
