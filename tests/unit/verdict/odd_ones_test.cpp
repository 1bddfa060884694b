// SPDX-License-Identifier: Apache-2.0
#include "verdict/odd_ones.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::size_t> odd(const std::vector<double>& values, double tolerance = 0.1) {
  return odd_ones(values, tolerance).places;
}

TEST(OddOnes, AreBelowTheMedianByMoreThanTheTolerance) {
  EXPECT_THAT(odd({100, 101, 99, 89, 100}), ElementsAre(3)); // the median is 100
  EXPECT_THAT(odd({100, 101, 99, 91, 100}), IsEmpty());
  EXPECT_THAT(odd({100, 101, 99, 150, 100}), IsEmpty()); // more is not odd
  EXPECT_EQ(odd_ones(std::vector<double>{100, 104, 102, 50}, 0.1).expected, 102);
}

TEST(OddOnes, NeedAMajorityThatIsAlike) {
  // Two thirds are: 4 of 6; and are not: 3 of 6.
  EXPECT_THAT(odd({100, 100, 100, 100, 50, 50}), ElementsAre(4, 5));
  EXPECT_THAT(odd({100, 100, 100, 50, 50, 50}), IsEmpty());
  EXPECT_THAT(odd({10, 20, 40, 80}), IsEmpty());
}

TEST(OddOnes, OfTwoDifferByTwiceTheTolerance) {
  EXPECT_THAT(odd({100, 81}), IsEmpty());
  EXPECT_THAT(odd({79, 100}), ElementsAre(0));
  EXPECT_EQ(odd_ones(std::vector<double>{79, 100}, 0.1).expected, 100);
  EXPECT_THAT(odd({79}), IsEmpty());
  EXPECT_THAT(odd({}), IsEmpty());
}

} // namespace
} // namespace reckon
