// SPDX-License-Identifier: Apache-2.0
#include "compare/adjust.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

TEST(AdjustPValues, MultipliesByNumberOverRankAndKeepsTheOrder) {
  // Ascending: 0.01, 0.02, 0.03, 0.5; times 4/rank: 0.04, 0.04, 0.04, 0.5. In the order given.
  const std::vector<double> p{0.02, 0.5, 0.01, 0.03};
  EXPECT_THAT(adjust_p_values(p), ElementsAre(DoubleNear(0.04, 1e-12), DoubleNear(0.5, 1e-12),
                                              DoubleNear(0.04, 1e-12), DoubleNear(0.04, 1e-12)));
}

TEST(AdjustPValues, NeverGivesASmallerPALargerValueThanALargerP) {
  // 0.04 * 3/1 = 0.12, 0.045 * 3/2 = 0.0675, 0.06 * 3/3 = 0.06: the minimum from the right is 0.06.
  const std::vector<double> p{0.04, 0.045, 0.06};
  EXPECT_THAT(adjust_p_values(p), ElementsAre(DoubleNear(0.06, 1e-12), DoubleNear(0.06, 1e-12),
                                              DoubleNear(0.06, 1e-12)));
}

TEST(AdjustPValues, IsAtMostOne) {
  const std::vector<double> p{0.9, 1.0};
  EXPECT_THAT(adjust_p_values(p), ElementsAre(1.0, 1.0));
}

TEST(AdjustPValues, LeavesOneTestAsItIsAndTakesNone) {
  const std::vector<double> one{0.03};
  EXPECT_THAT(adjust_p_values(one), ElementsAre(0.03));
  EXPECT_TRUE(adjust_p_values({}).empty());
}

} // namespace
} // namespace reckon
