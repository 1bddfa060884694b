// SPDX-License-Identifier: Apache-2.0
// Sums in whole numbers over a virtual network.
#include "../strategies/fixtures.hpp"
#include "core/error.hpp"
#include "equations/fixed_point.hpp"
#include "schedule/checker.hpp"
#include "strategies/lower.hpp"
#include "strategies/strategy.hpp"
#include "virtual_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace reckon {
namespace {

using test::Job;

Plan plan_for(const std::string& strategy, std::uint64_t n, std::uint64_t k, int bits,
              double bound = 1) {
  PlanOptions options;
  const bool racks = strategy == "rack_hierarchical"; // the profile has none: they are put in here
  options.strategy = racks ? "byteps_split" : strategy;
  options.part_bytes = 8192;
  options.window_parts = 2;
  options.fixed_point = FixedPointRequest{bits, bound};
  Plan plan = test::plan_for(test::cluster(1e9, 1e9),
                             test::workload({{"a", 9000, DType::fp32}, {"b", 3, DType::fp32}}), n,
                             k, options);
  for (std::size_t r = 0; racks && r < plan.ranks.size(); ++r) {
    plan.strategy = strategy;
    plan.ranks[r].rack = n > 1 && r % 2 == 1 ? "b" : "a";
  }
  return plan;
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
  for (const std::string& strategy : strategy_names()) {
    for (const std::uint64_t n : {1U, 2U, 5U}) {
      for (const std::uint64_t k : {0U, 2U}) {
        for (const int bits : {32, 16}) {
          if (strategy == "ps_noncolocated" && k == 0) {
            continue;
          }
          const Plan plan = plan_for(strategy, n, k, bits);
          const Schedule schedule = lower(plan);
          SCOPED_TRACE(strategy + " n " + std::to_string(n) + " k " + std::to_string(k) + " bits " +
                       std::to_string(bits));
          const CheckResult proof = check(schedule);
          ASSERT_THAT(proof.faults, testing::IsEmpty());
          Job job(schedule);
          for (std::uint32_t i = 0; i < 2; ++i) {
            ASSERT_EQ(job.iterate(i), 0) << job.error();
          }
          EXPECT_EQ(job.checked_bytes(), 2 * n * 9003 * 4);
          // The values must have needed rounding, or nothing was tested.
          EXPECT_GT(job.max_error(), 0.05 * fixed_point_error(plan.fixed_point->exponent, n));
        }
      }
    }
  }
}

template <class F>
void change_ops(Schedule& s, std::uint32_t rank, F change) {
  LaneProgram out;
  const LaneProgram in = s.ranks[rank].lanes[0];
  for (std::uint32_t i = 0; i < in.ops().size(); ++i) {
    Op op = in.ops()[i];
    change(op);
    const auto depends_on = in.dependencies(i);
    if (op.source_count > 0) {
      out.append_over(op, in.sources(op), depends_on);
    } else {
      out.append(op, depends_on);
    }
  }
  s.ranks[rank].lanes[0] = out;
}

TEST(FixedPoint, AWrongScaleIsBeyondTheBound) {
  Schedule s = lower(plan_for("ps_colocated", 3, 0, 32));
  change_ops(s, 1, [](Op& op) {
    if (op.kind == OpKind::to_fixed) {
      op.exponent = static_cast<std::int16_t>(op.exponent - 6); // rounds 64 times as coarsely
      op.limit /= 64;
    }
  });
  Job job(s);
  EXPECT_GT(job.iterate(0), 0);
  EXPECT_THAT(job.error(), testing::HasSubstr("is allowed"));
}

TEST(FixedPoint, TheCheckerFindsNumbersThatAreAddedAsWholeOnes) {
  Schedule forgotten = lower(plan_for("ps_colocated", 3, 0, 32));
  change_ops(forgotten, 2, [](Op& op) {
    if (op.kind == OpKind::to_fixed) {
      op.kind = OpKind::copy;
    }
  });
  EXPECT_THAT(check(forgotten).faults.front(), testing::HasSubstr("adds numbers as int32"));
  Schedule as_floats = lower(plan_for("ps_colocated", 3, 0, 32));
  change_ops(as_floats, 0,
             [](Op& op) { op.dtype = op.kind == OpKind::reduce ? DType::fp32 : op.dtype; });
  EXPECT_THAT(check(as_floats).faults.front(), testing::HasSubstr("adds fixed point as fp32"));
}

TEST(FixedPoint, WhatDoesNotFitIsRefused) {
  EXPECT_THROW(static_cast<void>(plan_for("ps_colocated", 5, 0, 3)), Error); // 3 / 5 = 0
}

} // namespace
} // namespace reckon
