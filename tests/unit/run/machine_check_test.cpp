// SPDX-License-Identifier: Apache-2.0
#include "run/machine_check.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(MachineCheck, TheMeanOfTwoRatesIsThatOfTheirTimes) {
  // A byte takes 1/20 and 1/60 s: 1/30 in the mean. Of copies 1/10 and 1/10.
  const MachineNow now = mean_of({20, 10}, {60, 10});
  EXPECT_DOUBLE_EQ(now.sum_bytes_per_second, 30);
  EXPECT_DOUBLE_EQ(now.copy_bytes_per_second, 10);
}

} // namespace
} // namespace reckon
