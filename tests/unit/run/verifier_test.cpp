// SPDX-License-Identifier: Apache-2.0
#include "run/verifier.hpp"

#include "strategies/lower.hpp"
#include "virtual_job.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

using test::Job;

/// A schedule of two workers and a server with this outcome.
Schedule schedule_of(Outcome outcome) {
  PlanOptions options;
  options.part_bytes = 4096;
  options.window_parts = 2;
  if (outcome == Outcome::fixed_sums) {
    options.fixed_point = FixedPointRequest{32, 1};
  } else if (outcome != Outcome::sums) {
    options.optimizer = Optimizer::sgd;
    options.update_at = UpdatePlace::worker;
    if (outcome == Outcome::latest) {
      options.async_steps = 2;
    }
  }
  return lower(test::plan_of({"ps_noncolocated", 2, 1}, options, {{"a", 3000, DType::fp32}}));
}

class VerifierOf : public testing::TestWithParam<Outcome> {};

TEST_P(VerifierOf, FindsOneWrongElementInAnyIteration) {
  const Schedule schedule = schedule_of(GetParam());
  ASSERT_EQ(schedule.outcome, GetParam());
  const bool kept = GetParam() == Outcome::parameters || GetParam() == Outcome::latest;
  Job job(schedule);
  job.expect_right(2);
  EXPECT_EQ(job.verifier(0).error_bound().has_value(), GetParam() == Outcome::fixed_sums);
  job.set_damage([&](Job& j) {
    const Slice at = kept ? schedule.ranks[1].parameters.front().at : Slice{k_gradient_buffer, 0};
    j.buffer(1, at.buffer)[at.offset + 4003] ^= std::byte{0x40}; // the exponent of element 1000
  });
  EXPECT_EQ(job.iterate(2), 1);
  EXPECT_NE(job.error().find("4000"), std::string::npos) << job.error();
}

INSTANTIATE_TEST_SUITE_P(Outcomes, VerifierOf,
                         testing::Values(Outcome::sums, Outcome::parameters, Outcome::latest,
                                         Outcome::fixed_sums));

TEST(WorkerIndex, CountsWorkersOnly) {
  Schedule schedule;
  schedule.worker = {true, false, true};
  EXPECT_EQ(worker_index(schedule, 0), 0U);
  EXPECT_EQ(worker_index(schedule, 1), std::nullopt);
  EXPECT_EQ(worker_index(schedule, 2), 1U);
}

} // namespace
} // namespace reckon
