// SPDX-License-Identifier: Apache-2.0
#include "probe/curve.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(CurveSizes, ArePowersOfFourOrOfTwoWithTheMiddleBetween) {
  EXPECT_THAT(curve_sizes(8, 1100, false), testing::ElementsAre(16, 64, 256, 1024));
  EXPECT_THAT(curve_sizes(256, 4096, false), testing::ElementsAre(256, 1024, 4096));
  EXPECT_THAT(curve_sizes(8, 64, true), testing::ElementsAre(8, 12, 16, 24, 32, 48, 64));
}

TEST(CurveSizes, ThoroughlyTheUsualOnesAreAmongThem) {
  const std::vector<std::uint64_t> all = curve_sizes(8, 256U << 20U, true);
  for (const std::uint64_t size : curve_sizes(8, 256U << 20U, false)) {
    EXPECT_THAT(all, testing::Contains(size));
  }
}

} // namespace
} // namespace reckon
