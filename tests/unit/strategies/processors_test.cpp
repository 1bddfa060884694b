// SPDX-License-Identifier: Apache-2.0
#include "strategies/processors.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace reckon {
namespace {

/// Three processors at work move 6 bytes a second together, two 5, one 3; sums take no time.
ProcessorRates six_five_three(std::size_t busy) {
  return {busy == 3 ? 6.0 : busy == 2 ? 5.0 : 3.0, std::numeric_limits<double>::infinity()};
}

TEST(Processors, WhoIsDoneLeavesTheMemoryToTheOthers) {
  // 2, 4 and 10 bytes: for a second each moves 2; then two are left with 2 and 8, at 2.5 each for
  // 0.8 seconds; the last 6 at 3.
  const std::vector<ProcessorWork> work{{4, 0}, {10, 0}, {2, 0}};
  const ProcessorTimes times = processor_times(work, six_five_three);
  EXPECT_NEAR(times.moving_s, 1 + 0.8 + 2, 1e-12);
  EXPECT_EQ(times.summing_s, 0);
}

TEST(Processors, WithoutWorkTheyAreNotBusy) {
  EXPECT_EQ(processor_times({}, six_five_three).moving_s, 0);
  const std::vector<ProcessorWork> work{{0, 0}, {6, 0}, {0, 0}};
  EXPECT_NEAR(processor_times(work, six_five_three).moving_s, 2, 1e-12);
}

TEST(Processors, MovingAndSummingAreOneAfterTheOther) {
  // Two processors move 4 and sum 2 together: the first has 2/2 + 2/1 seconds to do. The second has
  // a third of it; when it is done the first has done a third, and the rest takes it half as long.
  const auto rates = [](std::size_t) { return ProcessorRates{4, 2}; };
  const std::vector<ProcessorWork> work{{2, 2}, {0, 1}};
  const ProcessorTimes times = processor_times(work, rates);
  EXPECT_NEAR(times.moving_s, 1.0 / 3 * 1 + 2.0 / 3 * 0.5, 1e-12);
  EXPECT_NEAR(times.summing_s, 1.0 / 3 * 2 + 2.0 / 3 * 1, 1e-12);
}

} // namespace
} // namespace reckon
