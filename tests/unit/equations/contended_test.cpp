// SPDX-License-Identifier: Apache-2.0
#include "equations/contended.hpp"

#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace reckon {
namespace {

TEST(Contended, WhoEndsFirstFreesTheOther) {
  // Computing 6 s at half speed, communicating 2 s at 2/3: the latter ends after 3 s, in which 1.5
  // s were computed; 4.5 s are left: 7.5 s.
  EXPECT_DOUBLE_EQ(contended_seconds(6, 2, {2, 1.5}), 7.5);
  // The reverse: 3 s are computed at 1.5, done after 4.5 s, in which 4.5 / 2 = 2.25 s of 6 s were
  // communicated; 3.75 s are left: 8.25 s.
  EXPECT_DOUBLE_EQ(contended_seconds(3, 6, {1.5, 2}), 8.25);
}

TEST(Contended, BothEndTogether) {
  // 4 s at 1.5 and 3 s at 2: 6 s.
  EXPECT_DOUBLE_EQ(contended_seconds(4, 3, {1.5, 2}), 6);
}

TEST(Contended, TurnsOnOneProcessorTakeTheSumOfBoth) {
  EXPECT_DOUBLE_EQ(contended_seconds(5, 3, {2, 2}), 8);
}

TEST(Contended, OneAloneLosesNothing) {
  EXPECT_EQ(contended_seconds(5, 0, {3, 3}), 5);
  EXPECT_EQ(contended_seconds(0, 4, {3, 3}), 4);
}

TEST(Contended, WithoutContentionTheLongerBitForBitAndNeverBeyondTheFactors) {
  test::for_cases(54, 300, [](test::Random& random) {
    const double a = random.uniform(0, 1), b = random.uniform(0, 1);
    EXPECT_EQ(contended_seconds(a, b, {}), std::max(a, b));
    const ContentionFactors f{random.uniform(1, 3), random.uniform(1, 3)};
    const double seconds = contended_seconds(a, b, f);
    EXPECT_GE(seconds, std::max(a, b));
    EXPECT_LE(seconds, std::max(a * f.compute, b * f.communication) * (1 + 1e-12));
    EXPECT_EQ(seconds, contended_seconds(b, a, {f.communication, f.compute}));
  });
}

TEST(Contended, RefusesWhatCannotBe) {
  EXPECT_ERROR(contended_seconds(-1, 1, {}));
  EXPECT_ERROR(contended_seconds(1, 1, {0.9, 1}));
}

} // namespace
} // namespace reckon
