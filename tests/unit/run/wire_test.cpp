// SPDX-License-Identifier: Apache-2.0
// Gradients of fp32 that travel as halves, over a virtual network.
#include "documents/workload.hpp"
#include "equations/rounding.hpp"
#include "planning/wire.hpp"
#include "stats/random.hpp"
#include "strategies/lower.hpp"
#include "support/refusals.hpp"
#include "virtual_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace reckon {
namespace {

using test::Job;

constexpr std::uint64_t k_elements = 9003;

Plan plan_of(const test::Shape& shape, DType wire, std::optional<Order> order = {}) {
  PlanOptions options;
  options.part_bytes = 4096;
  options.window_parts = 2;
  options.wire = wire;
  if (order) {
    options.forward_seconds = options.backward_seconds = 1e-4;
    options.order = *order;
  }
  Plan plan = test::plan_of(shape, options, {{"a", 9000, wire}, {"b", 3, wire}});
  add_wire(plan);
  return plan;
}

TEST(Wire, TheErrorByHand) {
  // One rounding of bf16 (2^-8), then fp32's of one addition too many: 1.00390625 (1 + 2^-24) - 1.
  EXPECT_NEAR(rounding_error(DType::bf16, 1, 1), 0x1p-8 + 0x1p-24, 1e-9);
  // (1 + 2^-11)^2 (1 + 2^-24)^4 - 1 = 2^-10 + 2^-22 + 2^-22 + ...
  EXPECT_NEAR(rounding_error(DType::fp16, 2, 4), 0x1p-10 + 0x1p-21, 1e-9);
  // Workers round once, their server once; round a ring of 5 a gradient is in up to 4 sums.
  EXPECT_EQ(wire_error(plan_of({"ps_noncolocated", 5, 2}, DType::bf16)),
            rounding_error(DType::bf16, 2, 5));
  EXPECT_EQ(wire_error(plan_of({"ring", 5}, DType::bf16)), rounding_error(DType::bf16, 5, 5));
}

TEST(Wire, EveryStrategySumsExactlyWhatTheTypeHolds) {
  test::for_each_shape({1, 2, 5}, {0, 2}, {1, 2}, [](const test::Shape& shape) {
    for (const DType wire : {DType::bf16, DType::fp16}) {
      for (const std::optional<Order> order :
           {std::optional<Order>(), std::optional(Order::gradient),
            std::optional(Order::priority)}) {
        const Schedule schedule = lower(plan_of(shape, wire, order));
        ASSERT_THAT(check(schedule).faults, testing::IsEmpty());
        if (order) {
          continue; // the virtual network has no passes
        }
        Job job(schedule);
        job.expect_right(2);
        EXPECT_EQ(job.found().checked_bytes, 2 * shape.workers * k_elements * sizeof(float));
      }
    }
  });
}

/// Fills every worker's gradient with numbers of all magnitudes; returns by element their sum and
/// the sum of their magnitudes.
std::pair<std::vector<double>, std::vector<double>> fill(const Schedule& schedule, Job& job,
                                                         std::mt19937_64& random) {
  std::vector<double> sums(k_elements), magnitudes(k_elements);
  for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
    if (!schedule.worker[r]) {
      continue;
    }
    auto* const mine =
        reinterpret_cast<float*>(job.buffer(r, schedule.ranks[r].gradient_buffer).data());
    for (std::size_t i = 0; i < k_elements; ++i) {
      const double magnitude =
          std::ldexp(uniform_unit(random) + 0.5, -static_cast<int>(uniform_index(random, 10)));
      mine[i] = static_cast<float>(random() % 2 == 0 ? magnitude : -magnitude);
      sums[i] += static_cast<double>(mine[i]);
      magnitudes[i] += std::abs(static_cast<double>(mine[i]));
    }
  }
  return {sums, magnitudes};
}

TEST(Wire, SumsOfAnyNumbersAreWithinTheStatedErrorAndTheSameEverywhere) {
  constexpr std::uint64_t k_seed = 20261129;
  SCOPED_TRACE(k_seed);
  std::mt19937_64 random(k_seed);
  test::for_each_shape({2, 5}, {0, 2}, {1}, [&](const test::Shape& shape) {
    for (const DType wire : {DType::bf16, DType::fp16}) {
      const Plan plan = plan_of(shape, wire);
      const Schedule schedule = lower(plan);
      Job job(schedule);
      std::vector<double> sums, magnitudes;
      job.set_prepare([&](Job& all) { std::tie(sums, magnitudes) = fill(schedule, all, random); });
      const double allowed = *wire_error(plan);
      double worst = 0;
      job.set_damage([&](Job& all) {
        const auto of = [&](std::size_t r) {
          return all.buffer(r, schedule.ranks[r].gradient_buffer).first(k_elements * sizeof(float));
        };
        for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
          if (!schedule.worker[r]) {
            continue;
          }
          EXPECT_TRUE(std::ranges::equal(of(r), of(0))) << "rank " << r;
          for (std::size_t i = 0; i < k_elements; ++i) {
            const double got = static_cast<double>(reinterpret_cast<const float*>(of(r).data())[i]);
            worst = std::max(worst, std::abs(got - sums[i]) / magnitudes[i]);
          }
        }
      });
      static_cast<void>(job.iterate(0)); // other numbers than it expects
      EXPECT_LE(worst, allowed);
      EXPECT_GT(worst, allowed / 20); // or nothing was rounded
    }
  });
}

/// Three workers, with change(op, depends_on) of the ops of one rank.
template <class F>
Schedule changed(std::uint32_t rank, F change) {
  Schedule schedule = lower(plan_of({"ps_colocated", 3}, DType::bf16));
  test::change_ops(schedule.ranks[rank].lanes[0], [&](Op& op, test::Depends& depends_on,
                                                      test::Sources&) { change(op, depends_on); });
  return schedule;
}

TEST(Wire, TheCheckerFindsWhatIsNotRounded) {
  const auto of_kind = [](OpKind kind, auto change) {
    return [=](Op& op, test::Depends& depends_on) {
      if (op.kind == kind) {
        change(op, depends_on);
      }
    };
  };
  const std::string no_source = "memory nobody wrote";
  EXPECT_THAT(
      test::fault_of(changed(1, of_kind(OpKind::narrow,
                                        [](Op& op, auto&) {
                                          op.kind = OpKind::copy; // half of what is there, as it is
                                        }))),
      test::Says("bf16"));
  EXPECT_THAT(test::fault_of(changed(
                  1, of_kind(OpKind::narrow, [](Op& op, auto&) { op.destination.offset += 2; }))),
              testing::Not(""));
  EXPECT_THAT(
      test::fault_of(changed(2, of_kind(OpKind::widen, [](Op& op, auto&) { op.bytes -= 2; }))),
      test::Says("end with"));
  EXPECT_THAT(test::fault_of(changed(
                  0, of_kind(OpKind::widen, [](Op&, auto& depends_on) { depends_on.clear(); }))),
              testing::Not(""));
  EXPECT_THAT(test::fault_of(changed(
                  0, of_kind(OpKind::reduce, [](Op& op, auto&) { op.dtype = DType::fp32; }))),
              testing::Not(""));
}

/// By op of a lane: whether it is over only when the sum of `part` has been widened.
std::vector<bool> after_widening(const LaneProgram& lane, std::uint32_t part) {
  std::vector<bool> after(lane.ops().size());
  for (std::size_t i = 0; i < after.size(); ++i) {
    const Op& op = lane.ops()[i];
    after[i] = (op.kind == OpKind::widen && op.part == part) ||
               std::ranges::any_of(lane.dependencies(i), [&](auto d) { return after[d]; });
  }
  return after;
}

TEST(Wire, PassesThatWaitForASumWaitUntilItIsWide) {
  for (const bool of_parts : {true, false}) {
    test::for_each_shape({1, 3}, {0, 2}, {1, 2}, [&](const test::Shape& shape) {
      Plan plan = plan_of(shape, DType::bf16, Order::gradient);
      if (of_parts) {
        plan.passes = Passes{.of_parts = true};
      }
      const Schedule schedule = lower(plan);
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        for (std::uint32_t p = 0; schedule.worker[r] && p < plan.parts.size(); ++p) {
          const LaneProgram& lane = schedule.ranks[r].lanes[plan.parts.lane[p]];
          const std::vector<bool> after = after_widening(lane, p);
          std::size_t passes = 0, wait = 0;
          for (std::size_t i = 0; i < after.size(); ++i) {
            const bool its =
                lane.ops()[i].kind == OpKind::delay && (!of_parts || lane.ops()[i].part == p);
            passes += its ? 1U : 0U;
            wait += its && after[i] ? 1U : 0U;
          }
          // Of parts: the second. Else: the forward passes, as many as the backward ones; of a
          // worker that is alone they may wait for nothing.
          if (of_parts || shape.workers > 1) {
            EXPECT_EQ(wait, passes / 2) << "rank " << r;
          }
          EXPECT_GE(passes, 2U);
        }
      }
    });
  }
}

TEST(Wire, WhatRoundsNothingIsRefused) {
  Plan plan = plan_of({"ps_colocated", 3}, DType::bf16);
  plan.collective = Collective::reduce_scatter;
  EXPECT_ERROR(lower(plan));
  plan.collective = Collective::all_reduce;
  plan.sums_in_place = true;
  EXPECT_ERROR(lower(plan));
  plan.sums_in_place = false;
  plan.runs.front().dtype = DType::fp32;
  EXPECT_ERROR(lower(plan));
}

} // namespace
} // namespace reckon
