// SPDX-License-Identifier: Apache-2.0
#include "core/name_ranges.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using testing::ElementsAre;

TEST(NameRanges, JoinsNumbersThatFollowEachOther) {
  EXPECT_THAT(name_ranges({"gpu3", "gpu1", "gpu2", "gpu5", "numa0"}),
              ElementsAre("gpu1-3", "gpu5", "numa0"));
  EXPECT_THAT(name_ranges({"m0.0/gpu6", "m0.1/gpu7", "m0.0/gpu7"}),
              ElementsAre("m0.0/gpu6-7", "m0.1/gpu7"));
}

TEST(NameRanges, LeavesWhatHasNoPlainNumberAsItIs) {
  EXPECT_THAT(name_ranges({"cpu", "gpu01", "x1234567890"}),
              ElementsAre("cpu", "gpu01", "x1234567890"));
  EXPECT_THAT(name_ranges({}), ElementsAre());
}

TEST(FirstNames, SaysHowManyMoreThereAre) {
  EXPECT_EQ(first_names({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(first_names({"a", "b", "c", "d", "e"}), "a, b, c and 2 more");
  EXPECT_EQ(first_names({}), "");
}

} // namespace
} // namespace reckon
