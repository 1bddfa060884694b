// SPDX-License-Identifier: Apache-2.0
#include "page/axis.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

Axis axis(double from, double to, bool logarithmic) {
  return {from, to, 0, 100, logarithmic};
}

TEST(AxisOfAPicture, PutsValuesInProportion) {
  // A quarter of the way from 10 to 50 is 20.
  EXPECT_DOUBLE_EQ(axis(10, 50, false).at(20), 25);
  // 100 times 10 is half of 10000 times 10 on a logarithmic axis.
  EXPECT_DOUBLE_EQ(axis(10, 100'000, true).at(1000), 50);
}

TEST(AxisOfAPicture, MayGoDownwards) {
  Axis down = axis(0, 4, false);
  down.begin = 270;
  down.end = 10;
  EXPECT_DOUBLE_EQ(down.at(1), 270 - 260 / 4.0);
}

TEST(AxisOfAPicture, KeepsWhatIsOutsideAtItsEnds) {
  EXPECT_DOUBLE_EQ(axis(1, 10, true).at(0), 0);
  EXPECT_DOUBLE_EQ(axis(1, 10, true).at(1000), 100);
}

TEST(RoundNumbers, AreOneTwoOrFiveTimesAPowerOfTen) {
  EXPECT_THAT(round_numbers(axis(0, 24.3, false), 6), ElementsAre(0, 5, 10, 15, 20));
  EXPECT_THAT(round_numbers(axis(3, 9, false), 7), ElementsAre(3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(round_numbers(axis(0, 0.013, false), 8),
              ElementsAre(0, DoubleEq(0.002), DoubleEq(0.004), DoubleEq(0.006), DoubleEq(0.008),
                          DoubleEq(0.01), DoubleEq(0.012)));
}

TEST(RoundNumbers, ThinOutOnALongLogarithmicAxis) {
  EXPECT_THAT(round_numbers(axis(0.8, 12, true), 7), ElementsAre(1, 2, 5, DoubleEq(10)));
  // 0.5, 1, 2, 5, 10, 20, 50, 100 would be eight.
  EXPECT_THAT(round_numbers(axis(0.4, 100, true), 7),
              ElementsAre(1, 3, DoubleEq(10), DoubleEq(30), DoubleEq(100)));
  // Six decades by 1, 2, 5 would be 18 marks, by decades 7.
  EXPECT_THAT(round_numbers(axis(1, 1e6, true), 7), SizeIs(7));
  EXPECT_THAT(round_numbers(axis(1, 1e6, true), 4),
              ElementsAre(1, DoubleEq(100), DoubleEq(1e4), DoubleEq(1e6)));
}

TEST(RoundNumbers, HaveEqualStepsOnAShortLogarithmicAxis) {
  // 20 and 50 would be two.
  EXPECT_THAT(round_numbers(axis(11, 62, true), 7), ElementsAre(20, 30, 40, 50, 60));
}

TEST(RoundNumbers, AreNeverMoreThanAskedFor) {
  for (double to = 1.1; to < 1e9; to *= 1.7) {
    for (const bool logarithmic : {false, true}) {
      for (const std::size_t most : {2U, 5U, 8U}) {
        EXPECT_LE(round_numbers(axis(1, to, logarithmic), most).size(), most) << to;
      }
    }
  }
}

TEST(PowersOfTwo, HaveEqualSteps) {
  // 64 B to 256 MiB are 23 powers; every fourth of 2^6 to 2^28: 2^8, 2^12, ... 2^28 are six.
  EXPECT_THAT(powers_of_two(axis(64, 268435456, true), 6),
              ElementsAre(256, 4096, 65536, 1048576, 16777216, 268435456));
  EXPECT_THAT(powers_of_two(axis(262144, 4194304, true), 6),
              ElementsAre(262144, 524288, 1048576, 2097152, 4194304));
}

} // namespace
} // namespace reckon
