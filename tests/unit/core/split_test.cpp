// SPDX-License-Identifier: Apache-2.0
#include "core/split.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using testing::ElementsAre;

TEST(Split, KeepsEveryPartAndThoseThatAreEmpty) {
  EXPECT_THAT(split("a,b,c", ","), ElementsAre("a", "b", "c"));
  EXPECT_THAT(split("4,,4", ","), ElementsAre("4", "", "4"));
  EXPECT_THAT(split(",", ","), ElementsAre("", ""));
  EXPECT_THAT(split("", ","), ElementsAre(""));
  EXPECT_THAT(split("0..8..2", ".."), ElementsAre("0", "8", "2"));
  EXPECT_THAT(split("a.b...", ".."), ElementsAre("a.b", "."));
}

} // namespace
} // namespace reckon
