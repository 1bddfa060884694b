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

/// Three workers, each the root of a star over the others for its 4,000 bytes; or one root for all.
Schedule schedule_of(Collective collective) {
  Plan plan;
  plan.strategy = "mix";
  plan.collective = collective;
  plan.root = has_root(collective) ? 1 : 0;
  plan.part_bytes = 2000;
  plan.window_parts = 1; // slots are used again
  plan.gradient_bytes = 12'000;
  plan.runs = {{0, 12'000, DType::fp32}};
  plan.ranks.assign(3, {.machine = "m0", .worker = true, .server = true});
  for (std::int64_t t = 0; t < 3; ++t) {
    const std::int64_t root = has_root(collective) ? 1 : t;
    const std::vector<std::int64_t> star(3, root);
    std::vector<std::int64_t> alone(3, -1);
    alone[static_cast<std::size_t>(root)] = root;
    plan.trees.push_back(
        {"star", sums(collective) ? star : alone, sums(collective) ? alone : star, 1.0 / 3});
    for (std::uint64_t i = 0; i < 2; ++i) {
      plan.parts.offset_bytes.push_back(static_cast<std::uint64_t>(t) * 4000 + i * 2000);
      plan.parts.bytes.push_back(2000);
      plan.parts.tree.push_back(static_cast<std::uint64_t>(t));
      plan.parts.server.push_back(static_cast<std::uint64_t>(root));
      plan.parts.lane.push_back(0);
      plan.ranks[static_cast<std::size_t>(root)].assigned_bytes += 2000;
    }
  }
  return lower(plan);
}

TEST(VerifierOfHalves, LooksAtWhatEachRankEndsWithAndNoFurther) {
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather,
                                      Collective::broadcast, Collective::reduce}) {
    SCOPED_TRACE(name_of(collective));
    const Schedule schedule = schedule_of(collective);
    Job job(schedule);
    job.expect_right(2);
    const auto damage = [&](std::size_t rank, std::size_t byte) {
      job.set_damage(
          [rank, byte](Job& j) { j.buffer(rank, k_gradient_buffer)[byte + 3] ^= std::byte{0x40}; });
    };
    damage(1, 4400); // in the second third, whose root is rank 1 in any case
    EXPECT_EQ(job.iterate(2), 1);
    EXPECT_NE(job.error().find("4400"), std::string::npos) << job.error();
    damage(2, 400); // in the first third, which rank 2 ends with where roots give
    EXPECT_EQ(job.iterate(3), gives(collective) ? 1 : 0);
  }
}

TEST(WorkerIndex, CountsWorkersOnly) {
  Schedule schedule;
  schedule.worker = {true, false, true};
  EXPECT_EQ(worker_index(schedule, 0), 0U);
  EXPECT_EQ(worker_index(schedule, 1), std::nullopt);
  EXPECT_EQ(worker_index(schedule, 2), 1U);
}

} // namespace
} // namespace reckon
