// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/program.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

// Two stations of 1 byte/s, a column on each and a third on both by halves: the optimum is 1/2 s
// with any mix of the third with equal shares of the first two. With costs 1, 1 and 3 the first two
// are the least. With a slack of a tenth and costs 0, 2 and 3 the first takes all that 0.55 s let
// it: shares 0.55 and 0.45.
TEST(SharesProgramTest, TheLeastCostlySharesStayWithinTheSlack) {
  SharesProgram program({1, 1}, {0, 0}, {1});
  program.add({1, 0});
  program.add({0, 1});
  program.add({0.5, 0.5});
  const SharesProgram::Solution solution = program.solve();
  EXPECT_NEAR(solution.seconds_per_byte, 0.5, 1e-9);
  const std::vector<double> even = program.least(solution, {1, 1, 3}, 0);
  EXPECT_NEAR(even[0], 0.5, 1e-6);
  EXPECT_NEAR(even[1], 0.5, 1e-6);
  const std::vector<double> uneven = program.least(solution, {0, 2, 3}, 0.1);
  EXPECT_NEAR(uneven[0], 0.55, 1e-6);
  EXPECT_NEAR(uneven[1], 0.45, 1e-6);
}

} // namespace
} // namespace reckon
