// SPDX-License-Identifier: Apache-2.0
#include "planning/sweep.hpp"

#include "core/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using testing::ElementsAre;

TEST(SweepValues, AreARangeOrAList) {
  EXPECT_THAT(sweep_values("0..3"), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(sweep_values("0..8..4"), ElementsAre("0", "4", "8"));
  EXPECT_THAT(sweep_values("1..6..4"), ElementsAre("1", "5"));
  EXPECT_THAT(sweep_values("64KiB,1MiB"), ElementsAre("64KiB", "1MiB"));
  for (const char* bad : {"4..1", "0..4..0", "0..20000", "a..4", "0..", "1..2..3..4"}) {
    EXPECT_THROW(static_cast<void>(sweep_values(bad)), Error) << bad;
  }
}

TEST(Sweep, GoesOnAfterAValueWithoutAPlanUnlessNoneHasOne) {
  const auto make = [](const std::string& value) {
    if (value == "bad") {
      fail(ErrorKind::input, "no such machine");
    }
    if (value == "wrong") {
      fail(ErrorKind::usage, "no such value");
    }
    Plan plan;
    plan.strategy = value;
    return plan;
  };
  const std::vector<SweptPlan> plans = sweep({"bad", "ring"}, make);
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_FALSE(plans[0].plan);
  EXPECT_EQ(plans[0].why_not, "no such machine");
  ASSERT_TRUE(plans[1].plan);
  EXPECT_EQ(plans[1].plan->strategy, "ring");
  EXPECT_THROW(static_cast<void>(sweep({"bad", "bad"}, make)), Error);
  EXPECT_THROW(static_cast<void>(sweep({"ring", "wrong"}, make)), Error);
}

} // namespace
} // namespace reckon
