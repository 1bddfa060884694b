// SPDX-License-Identifier: Apache-2.0
#include "run/iteration_count.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

struct Case {
  std::uint32_t iterations, warm_up;
  std::uint64_t first;        ///< steps made before
  std::uint32_t warm_up_here; ///< expected
  std::uint64_t counted;      ///< expected
};
class FixedIterations : public testing::TestWithParam<Case> {};

TEST_P(FixedIterations, AreOfAllStepsFromTheStart) {
  const Case& c = GetParam();
  RunOptions options;
  options.iterations = c.iterations;
  options.warm_up = c.warm_up;
  IterationCount count(options, c.first);
  EXPECT_EQ(count.warm_up(), c.warm_up_here);
  std::uint64_t counted = 0;
  for (std::uint64_t i = c.first; !count.enough(); ++i) {
    EXPECT_EQ(count.counts(i), i >= c.first + c.warm_up_here);
    if (count.counts(i)) {
      ++counted;
      count.add(1, Seconds(static_cast<double>(counted)));
    }
    ASSERT_LT(i, 100U);
  }
  EXPECT_EQ(counted, c.counted);
}

INSTANTIATE_TEST_SUITE_P(Options, FixedIterations,
                         testing::Values(Case{5, 2, 0, 2, 5}, Case{1, 0, 0, 0, 1},
                                         Case{5, 2, 3, 2, 2}, // 7 in all, 4 are left
                                         Case{5, 2, 5, 1, 1}, // of 2 that are left one counts
                                         Case{5, 2, 6, 0, 1}));

TEST(IterationCount, RefusesACheckpointAfterTheLastStep) {
  RunOptions options;
  options.iterations = 5;
  options.warm_up = 2;
  options.checkpoints.resume_folder = "folder";
  EXPECT_EQ(
      test::refusal([&] { return IterationCount(options, 7); }),
      "folder: its checkpoint is after step 7, and 5 iterations with 2 to warm up are 7 steps "
      "in all; ask for more --iterations");
}

TEST(IterationCount, MakesThreeWhateverTheBudget) {
  RunOptions options;
  options.budget = Seconds(1);
  IterationCount count(options, 0);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(count.enough());
    count.add(2, Seconds(2 * i + 2)); // each is longer than all of the budget
  }
  EXPECT_TRUE(count.enough());
}

TEST(IterationCount, FillingAndCheckingAreInTheBudget) {
  RunOptions options;
  options.budget = Seconds(3);
  IterationCount count(options, 0);
  int made = 0;
  for (; made < 100 && !count.enough(); ++made) { // 1 to 5 ms each, so nothing is precise
    count.add(1e-3 * (1 + made % 5), Seconds(0.5 * (made + 1)));
  }
  EXPECT_EQ(made, 6); // 6 x 0.5 s are 3 s
}

TEST(IterationCount, PausesAfterEachSoManyThatCount) {
  RunOptions options;
  options.iterations = 6;
  options.warm_up = 2;
  const IterationCount count(options, 0);
  for (std::uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(count.pauses(i, 3), i == 5) << i; // 2 to warm up and 3 that count
    EXPECT_FALSE(count.pauses(i, 0));
  }
}

} // namespace
} // namespace reckon
