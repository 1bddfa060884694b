// SPDX-License-Identifier: Apache-2.0
// Sums in whole numbers over a virtual network.
#include "equations/fixed_point.hpp"
#include "run/fixed_values.hpp"
#include "strategies/lower.hpp"
#include "support/refusals.hpp"
#include "virtual_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace reckon {
namespace {

using test::Job;

Plan plan_of(const test::Shape& shape, int bits) {
  PlanOptions options;
  options.part_bytes = 8192;
  options.window_parts = 2;
  options.fixed_point = FixedPointRequest{bits, 1};
  return test::plan_of(shape, options, {{"a", 9000, DType::fp32}, {"b", 3, DType::fp32}});
}

TEST(FixedPoint, RuleByHand) {
  // 32 bits, 4 workers: (2^31 - 1)/4 = 536870911.75; |g| <= 1: 2^28 + 1/2 fits, 2^29 does not.
  EXPECT_EQ(fixed_point_limit(32, 4), 536870911);
  EXPECT_EQ(fixed_point_exponent(536870911, 1), 28);
  EXPECT_EQ(fixed_point_error(28, 4), 4 / 536870912.0); // 4 / (2 2^28)
  // 8 bits, 4 workers: 127/4 = 31; |g| <= 3: 31 - 1/2 = 30.5, / 3 = 10.2: 2^3.
  EXPECT_EQ(fixed_point_limit(8, 4), 31);
  EXPECT_EQ(fixed_point_exponent(31, 3), 3);
  // Exactly a power of two of room: 1.5 - 0.5 = 1.
  EXPECT_EQ(fixed_point_exponent(1, 0.5), 0);
  EXPECT_EQ(fixed_point_exponent(1, 1e6), -21); // 0.5e-6 = 2^-20.9
  EXPECT_EQ(fixed_point_limit(8, 128), 0);
}

TEST(FixedPoint, NoSumLeavesItsBits) {
  for (int bits = 2; bits <= 32; ++bits) {
    for (const std::uint64_t n : {1U, 2U, 3U, 7U, 64U, 1000U}) {
      for (const double bound : {1e-20, 0.3, 1.0, 17.0, 1e10}) {
        const std::int32_t limit = fixed_point_limit(bits, n);
        if (limit < 1) {
          continue;
        }
        const double scale = std::ldexp(1, fixed_point_exponent(limit, bound));
        const double most = std::nearbyint(bound * scale);
        EXPECT_LE(most * static_cast<double>(n), std::ldexp(1, bits - 1) - 1);
        EXPECT_GT((2 * bound * scale + 0.5) * static_cast<double>(n),
                  std::ldexp(1, bits - 1) - 1 - static_cast<double>(n)); // twice would not fit
      }
    }
  }
}

TEST(FixedPoint, EveryStrategySumsWithinTheBound) {
  test::for_each_shape({1, 2, 5}, {0, 2}, {1}, [](const test::Shape& shape) {
    if (shape.strategy == k_rack_hierarchical) {
      return; // trees have no such sums
    }
    for (const int bits : {32, 16}) {
      SCOPED_TRACE(bits);
      const Plan plan = plan_of(shape, bits);
      const Schedule schedule = lower(plan);
      ASSERT_THAT(check(schedule).faults, testing::IsEmpty());
      Job job(schedule);
      job.expect_right(2);
      EXPECT_EQ(job.found().checked_bytes, 2 * shape.workers * 9003 * 4);
      // The values must have needed rounding, or nothing was tested.
      const double bound = fixed_point_error(plan.fixed_point->exponent, shape.workers);
      EXPECT_GT(job.found().max_error, 0.05 * bound);
      EXPECT_EQ(job.verifier(0).error_bound(), bound);
    }
  });
}

/// A plan of three workers in 32 bits, with `change` of the ops of one rank.
template <class F>
Schedule changed(std::uint32_t rank, F change) {
  Schedule schedule = lower(plan_of({"ps_colocated", 3}, 32));
  test::change_ops(schedule.ranks[rank].lanes[0],
                   [&](Op& op, test::Depends&, test::Sources&) { change(op); });
  return schedule;
}

TEST(FixedPoint, AWrongScaleIsBeyondTheBound) {
  const Schedule schedule = changed(1, [](Op& op) {
    if (op.kind == OpKind::to_fixed) {
      op.exponent = static_cast<std::int16_t>(op.exponent - 6); // rounds 64 times as coarsely
      op.limit /= 64;
    }
  });
  Job job(schedule);
  EXPECT_GT(job.iterate(0), 0);
  EXPECT_THAT(job.error(), testing::HasSubstr("is allowed"));
}

TEST(FixedPoint, ASumThatIsInfiniteIsWrongAndNoDistance) {
  // A distance of infinity is nothing that a document, or a message between ranks, can say.
  const FixedValues values(1, {28, 536870911, 1});
  const std::vector<DTypeRun> runs{{0, 8, DType::fp32}};
  std::array<float, 2> sums{};
  const auto memory = std::as_writable_bytes(std::span(sums));
  values.fill(memory, runs, 0, 0);
  sums[1] = HUGE_VALF;
  const RankVerification found = values.check(memory, runs, 0);
  EXPECT_EQ(found.wrong_elements, 1U);
  EXPECT_TRUE(std::isfinite(found.max_error));
}

TEST(FixedPoint, TheCheckerFindsNumbersThatAreAddedAsWholeOnes) {
  const Schedule forgotten =
      changed(2, [](Op& op) { op.kind = op.kind == OpKind::to_fixed ? OpKind::copy : op.kind; });
  EXPECT_THAT(test::fault_of(forgotten), test::Says("int32"));
  const Schedule as_floats =
      changed(0, [](Op& op) { op.dtype = op.kind == OpKind::reduce ? DType::fp32 : op.dtype; });
  EXPECT_THAT(test::fault_of(as_floats), test::Says("converted"));
}

TEST(FixedPoint, WhatDoesNotFitIsRefused) {
  EXPECT_ERROR(plan_of({"ps_colocated", 5}, 3)); // 3 / 5 = 0
  Plan plan = plan_of({"ps_colocated", 3}, 16);
  ++plan.fixed_point->exponent; // by hand: a gradient near the bound would be cut off
  EXPECT_ERROR(lower(plan));
  plan.fixed_point->exponent -= 2; // coarser than it could be, and right
  EXPECT_EQ(test::fault_of(lower(plan)), "");
  plan.fixed_point->bits = 2; // 1 / 3 = 0
  EXPECT_ERROR(lower(plan));
}

} // namespace
} // namespace reckon
