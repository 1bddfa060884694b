// SPDX-License-Identifier: Apache-2.0
#include "strategies/rate_law.hpp"

#include "support/cases.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace reckon {
namespace {

Rate exactly(double rate) {
  return {rate, rate, rate};
}

TEST(RateLaw, BetweenTwoNumbersAtOnceItIsLinearInLogarithms) {
  RateLaw law;
  law.add(4, 2, 1 << 20, exactly(80e9));
  law.add(16, 2, 1 << 20, exactly(160e9));
  // Eight are half way in logarithms: the geometric mean.
  EXPECT_NEAR(law.at(8, 2, 1 << 20).mid, std::sqrt(80e9 * 160e9), 1);
  EXPECT_DOUBLE_EQ(law.at(4, 2, 1 << 20).mid, 80e9);
  EXPECT_DOUBLE_EQ(law.at(16, 2, 1 << 20).mid, 160e9);
}

TEST(RateLaw, BeyondTheMostItIsSaturatedAndFewerHaveEachTheirPart) {
  RateLaw law;
  law.add(4, 2, 1 << 20, exactly(80e9));
  law.add(16, 2, 1 << 20, exactly(160e9));
  EXPECT_DOUBLE_EQ(law.at(64, 2, 1 << 20).mid, 160e9);
  EXPECT_DOUBLE_EQ(law.at(1, 2, 1 << 20).mid, 20e9);
}

TEST(RateLaw, OneNumberAloneSaysNothingOfMore) {
  RateLaw each;
  RateLaw shared(RateLaw::Beyond::shared);
  for (RateLaw* const law : {&each, &shared}) {
    law->add(2, 2, 1, exactly(10e9));
  }
  EXPECT_DOUBLE_EQ(each.at(4, 2, 1).mid, 20e9);
  EXPECT_DOUBLE_EQ(shared.at(4, 2, 1).mid, 10e9);
  EXPECT_DOUBLE_EQ(shared.at(1, 2, 1).mid, 5e9);
}

TEST(RateLaw, WhatIsNoRateOfSeveralTogetherStaysBeyondWhatWasMeasured) {
  RateLaw law(RateLaw::Beyond::same);
  law.add(2, 2, 1, exactly(1.5));
  EXPECT_DOUBLE_EQ(law.at(1, 2, 1).mid, 1.5);
  EXPECT_DOUBLE_EQ(law.at(8, 2, 1).mid, 1.5);
}

TEST(RateLaw, OperandsAndPartsAreInterpolatedWithinEachNumberAndStayBeyond) {
  RateLaw law;
  law.add(1, 2, 1 << 18, exactly(8e9));
  law.add(1, 2, 1 << 20, exactly(4e9));
  law.add(1, 8, 1 << 20, exactly(16e9));
  EXPECT_NEAR(law.at(1, 2, 1 << 19).mid, std::sqrt(32.0) * 1e9, 1);
  EXPECT_NEAR(law.at(1, 4, 1 << 20).mid, 8e9, 1);
  EXPECT_DOUBLE_EQ(law.at(1, 2, 1 << 24).mid, 4e9);
  EXPECT_DOUBLE_EQ(law.at(1, 2, 1).mid, 8e9);
  EXPECT_DOUBLE_EQ(law.at(1, 32, 1 << 18).mid, 16e9); // of eight operands one size was measured
  EXPECT_DOUBLE_EQ(law.best(), 16e9);
  EXPECT_DOUBLE_EQ(law.shortest(), 1 << 18);
}

TEST(RateLaw, IsMonotoneWhereverItsPointsAreAndNeverBeyondThem) {
  for (int seed = 0; seed < support::cases(200); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(static_cast<unsigned>(seed));
    RateLaw law;
    double rate = 1e9;
    double most = 0;
    for (double at_once = 1; at_once <= 64; at_once += 1 + static_cast<double>(random() % 16)) {
      rate *= 1 + static_cast<double>(random() % 100) / 100;
      most = rate;
      law.add(at_once, 2, 1, {rate / 2, rate, rate * 2});
    }
    double before = 0;
    for (double at_once = 1; at_once < 100; at_once += 0.5) {
      const Rate now = law.at(at_once, 2, 1);
      EXPECT_GE(now.mid, before * (1 - 1e-12)) << at_once;
      EXPECT_LE(now.lo, now.mid);
      EXPECT_LE(now.mid, now.hi);
      before = now.mid;
    }
    EXPECT_GE(before, most * (1 - 1e-12));
  }
}

} // namespace
} // namespace reckon
