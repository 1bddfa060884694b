// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"
#include "proved.hpp"

#include "schedule/checker.hpp"
#include "strategies/lower.hpp"
#include "strategies/strategy.hpp"
#include "support/refusals.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

/// 3 + 2 tensors of two element types, sizes that are no multiples of anything.
Workload odd_workload() {
  return workload({{"a", 5000, DType::fp32},
                   {"b", 77, DType::fp32},
                   {"c", 3333, DType::fp16},
                   {"d", 1, DType::bf16},
                   {"e", 12345, DType::bf16}});
}

struct Case {
  std::string strategy;
  std::uint64_t workers, servers;
  int lanes;
  std::uint64_t part_bytes, window;

  [[nodiscard]] PlanOptions options() const {
    return {.strategy = strategy, .part_bytes = part_bytes, .window_parts = window};
  }
  [[nodiscard]] Plan plan(const PlanOptions& options) const {
    return plan_for(cluster(1e9, 5e8), odd_workload(), workers, servers, options, lanes);
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} n={} k={} lanes {} part {} window {}", strategy, workers, servers, lanes,
                       part_bytes, window);
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& strategy : strategy_names()) {
    for (const std::uint64_t n : {1U, 2U, 3U, 5U}) {
      for (const std::uint64_t k : {0U, 1U, 2U, 7U}) {
        if (strategy == "ps_noncolocated" && k == 0) {
          continue;
        }
        for (const int lanes : {1, 3}) {
          all.push_back({strategy, n, k, lanes, 4096, 2});
        }
        all.push_back({strategy, n, k, 1, 1024, 1});
        all.push_back({strategy, n, k, 2, 1U << 20U, 4});
      }
    }
  }
  return all;
}

TEST(Lower, EveryStrategyIsProvedCorrectForEveryShape) {
  for (const Case& c : cases()) {
    PlanOptions options = c.options();
    for (const Cutting cutting : {Cutting::fused, Cutting::tensors}) {
      SCOPED_TRACE(c.text());
      options.cutting = cutting;
      expect_proved(c.plan(options));
    }
  }
}

TEST(Lower, BytesOnEveryPortAreTheEquations) {
  // n = 8, k = 4, M = 44 * 64 KiB: D = 88 slots, 4 a worker, 14 a server, in lowest terms 44 parts:
  // 2 and 7. Worker port: M + (n-2) g = 44 + 6*2 = 56 parts; server port: n c = 8*7 = 56 parts.
  // Both directions alike.
  const std::uint64_t part = 65536;
  const Plan plan = plan_for(cluster(1e9, 1e9), one_tensor(44 * part / 4), 8, 4,
                             {.strategy = "byteps_split", .part_bytes = part});
  EXPECT_EQ(plan.parts.size(), 44U);
  EXPECT_NEAR(plan.assignment_gap, 0, 1e-12);
  const Traffic traffic = traffic_of(lower(plan));
  EXPECT_THAT(traffic.egress_bytes, Each(56 * part));
  EXPECT_THAT(traffic.ingress_bytes, Each(56 * part));
}

TEST(Lower, PassesChangeNothingThatIsSummed) {
  for (const Case& c : cases()) {
    for (const Order order : {Order::gradient, Order::priority}) {
      SCOPED_TRACE(c.text());
      PlanOptions options = c.options();
      options.forward_seconds = 0.001;
      options.backward_seconds = 0.002;
      options.order = order;
      const Plan plan = c.plan(options);
      ASSERT_TRUE(plan.passes);
      EXPECT_NEAR(plan.passes->total_seconds(), 0.003, 1e-12);
      EXPECT_GE(plan.prediction.mid_seconds, plan.prediction.bound_seconds * (1 - 1e-9));
      const Schedule schedule = lower(plan);
      ASSERT_THAT(check(schedule).faults, IsEmpty());
      // Every lane of a worker plays both passes whole; a server plays none.
      for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
        for (const LaneProgram& lane : schedule.ranks[r].lanes) {
          std::int64_t played = 0;
          for (const Op& op : lane.ops()) {
            played += op.duration_ns;
          }
          if (plan.ranks[r].worker && c.workers > 1) {
            EXPECT_NEAR(static_cast<double>(played), 3e6, 20);
          } else if (!plan.ranks[r].worker) {
            EXPECT_EQ(played, 0);
          }
        }
      }
    }
  }
}

/// How many layers' forward passes wait for sums, over all lanes of a plan with passes: each waits
/// for the layer before, and what else it waits for are sums.
std::size_t layers_that_wait(const Plan& plan) {
  std::size_t waiting = 0;
  for (const RankProgram& rank : lower(plan).ranks) {
    for (const LaneProgram& lane : rank.lanes) {
      std::size_t delays = 0;
      for (std::size_t op = 0; op < lane.ops().size(); ++op) {
        if (lane.ops()[op].kind == OpKind::delay && ++delays > plan.passes->size()) {
          waiting += lane.dependencies(op).size() > 1 ? 1U : 0U;
        }
      }
    }
  }
  return waiting;
}

TEST(Lower, InGradientOrderNoLayerButTheFirstOfTheForwardPassWaitsForSums) {
  // 16 equal layers, 8 MB at 10 MB/s after a backward pass of 10 ms: nearly all is left to hide.
  const Workload model = equal_tensors(16, 125'000);
  for (const std::string& strategy : strategy_names()) {
    SCOPED_TRACE(strategy);
    const auto plan = [&](Order order) {
      return plan_for(cluster(1e7, 1e7), model, 3, 2,
                      {.strategy = strategy,
                       .part_bytes = 50'000,
                       .forward_seconds = 0.5,
                       .backward_seconds = 0.01,
                       .order = order},
                      2);
    };
    EXPECT_EQ(layers_that_wait(plan(Order::gradient)), 3U * 2U); // workers' lanes
    EXPECT_EQ(layers_that_wait(plan(Order::priority)), 3U * 2U * 16U);
  }
}

TEST(Lower, SumsInPlaceAreProvedCorrectForEveryShape) {
  for (const Case& c : cases()) {
    for (const bool passes : {false, true}) {
      if (c.strategy == "ring" || c.strategy == k_two_level_split) {
        continue; // they hand sums on
      }
      SCOPED_TRACE(c.text() + (passes ? " with passes" : ""));
      PlanOptions options = c.options();
      if (passes) {
        options.forward_seconds = 0.001;
        options.backward_seconds = 0.002;
      }
      Plan plan = c.plan(options);
      const Schedule sent = lower(plan);
      plan.sums_in_place = true;
      const Schedule schedule = lower(plan);
      ASSERT_THAT(check(schedule).faults, IsEmpty());
      EXPECT_EQ(traffic_of(schedule).egress_bytes, traffic_of(sent).egress_bytes);
      EXPECT_EQ(traffic_of(schedule).ingress_bytes, traffic_of(sent).ingress_bytes);
      for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
        const bool worker = plan.ranks[r].worker;
        EXPECT_THAT(schedule.ranks[r].buffer_bytes, ElementsAre(worker ? plan.gradient_bytes : 0));
        EXPECT_EQ(delay_seconds(schedule.ranks[r]), delay_seconds(sent.ranks[r]));
      }
    }
  }
}

TEST(Lower, SumsInPlaceSayTwoWordsForEachServerAndWorker) {
  // 3 workers that sum, 1 lane, no passes: each tells the 2 others that its gradient is there and
  // that its sums are.
  Plan plan = plan_for(cluster(1e9, 1e9), odd_workload(), 3, 0,
                       {.strategy = "ps_colocated", .part_bytes = 1024});
  plan.sums_in_place = true;
  const Schedule schedule = lower(plan);
  for (const RankProgram& rank : schedule.ranks) {
    EXPECT_EQ(std::ranges::count_if(rank.lanes[0].ops(),
                                    [](const Op& op) { return op.kind == OpKind::write; }),
              4);
  }
}

TEST(Lower, SumsInPlaceAreSaidToBeThereWhenAllOfTheServersLaneAreMade) {
  Plan plan = plan_for(cluster(1e9, 1e9), odd_workload(), 3, 0,
                       {.strategy = "ps_colocated", .part_bytes = 1024}, 2);
  plan.sums_in_place = true;
  const Schedule schedule = lower(plan);
  for (const RankProgram& rank : schedule.ranks) {
    for (const LaneProgram& lane : rank.lanes) {
      std::vector<std::uint32_t> sums;
      std::size_t said = 0;
      for (std::uint32_t i = 0; i < lane.ops().size(); ++i) {
        if (lane.ops()[i].kind == OpKind::sum_in_place) {
          sums.push_back(i);
        } else if (lane.ops()[i].kind == OpKind::write && !sums.empty()) {
          EXPECT_THAT(lane.dependencies(i), ElementsAreArray(sums));
          ++said;
        }
      }
      EXPECT_GT(sums.size(), 1U);
      EXPECT_EQ(said, 2U); // to each other worker
    }
  }
}

TEST(Lower, RefusesToSumInPlaceWhatIsSentOn) {
  for (const auto& [strategy, optimizer] :
       {std::pair("ring", std::optional<Optimizer>()),
        std::pair("ps_colocated", std::optional(Optimizer::sgd))}) {
    Plan plan = plan_for(cluster(1e9, 1e9), one_tensor(4096), 3, 0,
                         {.strategy = strategy, .optimizer = optimizer});
    plan.sums_in_place = true;
    EXPECT_REFUSED(input, "sums in place", lower(plan));
  }
}

TEST(Lower, SumsOverRacksAreProvedCorrectForEveryShape) {
  // Racks of unequal size, with and without machines that only serve.
  for (const std::uint64_t n : {2U, 3U, 5U, 6U}) {
    for (const std::uint64_t k : {0U, 2U, 3U, 4U}) {
      for (const std::uint64_t racks : {2U, 3U}) {
        for (const std::uint64_t window : {1U, 3U, 64U}) {
          if (racks <= n && (k == 0 || k >= racks)) {
            SCOPED_TRACE(fmt::format("n={} k={} racks {} window {}", n, k, racks, window));
            const Plan plan =
                plan_in_racks(odd_workload(), n, k, racks,
                              {.part_bytes = 4096, .window_parts = window}, n == 5 ? 3 : 1);
            const Schedule schedule = lower(plan);
            ASSERT_THAT(check(schedule).faults, IsEmpty());
            const Traffic traffic = traffic_of(schedule);
            for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
              EXPECT_EQ(traffic.egress_bytes[r], plan.ranks[r].egress_bytes) << "rank " << r;
            }
          }
        }
      }
    }
  }
}

TEST(Lower, ARackWithoutWorkersSumsForTheOthers) {
  const Plan plan = plan_in_racks(odd_workload(), 2, 3, 3, {.part_bytes = 4096});
  const Traffic traffic = traffic_of(lower(plan));
  EXPECT_GT(traffic.ingress_bytes[4], 0U); // alone in the third rack
  EXPECT_GT(traffic.ingress_bytes[3], 0U);
}

TEST(Lower, OneStreamARackGoesUp) {
  // Two racks of three workers and one aggregator. Each rack roots half of M: up go its sum of the
  // other half and the result of its own, M in all, however many workers it has.
  const Plan plan = plan_in_racks(one_tensor(64 * 1024), 6, 2, 2, {.part_bytes = 4096});
  const Schedule schedule = lower(plan);
  const std::uint64_t m = plan.gradient_bytes;
  std::uint64_t up = 0;
  for (std::uint32_t r = 0; r < 8; r += 2) {
    for (const Op& op : schedule.ranks[r].lanes[0].ops()) {
      up += op.kind == OpKind::write && op.peer % 2 == 1 ? op.bytes : 0;
    }
  }
  EXPECT_EQ(up, m);
  // An aggregator: three gradients in, M/2 of the other rack's sums, M/2 of its results.
  EXPECT_EQ(traffic_of(schedule).ingress_bytes[6], 4 * m);
}

TEST(Lower, RefusesSumsOverRacksWithoutTheirTrees) {
  Plan plan = plan_in_racks(odd_workload(), 4, 2, 2, {});
  plan.trees.clear();
  plan.parts.tree.clear();
  EXPECT_REFUSED(input, "again", lower(plan));
}

TEST(Lower, ARankOfARingStartsAPartWhenTheOneAWindowBeforeIsBack) {
  for (const std::uint64_t n : {2U, 4U, 5U}) {
    for (const std::uint64_t window : {1U, 3U}) {
      const Plan plan =
          plan_for(cluster(1e9, 1e9), odd_workload(), n, 0,
                   {.strategy = "ring", .part_bytes = 1024, .window_parts = window}, 2);
      const Schedule schedule = lower(plan);
      std::size_t starts = 0;
      for (std::size_t rank = 0; rank < n; ++rank) {
        SCOPED_TRACE(testing::Message() << n << " ranks, window " << window << ", rank " << rank);
        for (const LaneProgram& lane : schedule.ranks[rank].lanes) {
          std::vector<std::uint32_t> started; // parts
          for (std::uint32_t i = 0; i < lane.ops().size(); ++i) {
            const Op& op = lane.ops()[i];
            // Sums start at the rank after the owner, and only they are sent unsummed.
            if (op.kind != OpKind::write || plan.parts.server[op.part] != (rank + n - 1) % n ||
                op.tag == op.part) {
              continue;
            }
            started.push_back(op.part);
            if (started.size() <= window) {
              EXPECT_THAT(lane.dependencies(i), IsEmpty());
              continue;
            }
            ASSERT_EQ(lane.dependencies(i).size(), 1U);
            const Op& back = lane.ops()[lane.dependencies(i).front()];
            EXPECT_EQ(back.kind, OpKind::await);
            EXPECT_EQ(back.part, started[started.size() - 1 - window]);
            EXPECT_EQ(back.tag, back.part); // its sum, not an operand
          }
          starts += started.size();
        }
      }
      EXPECT_EQ(starts, plan.parts.size());
    }
  }
}

TEST(Lower, OneWorkerMovesNothing) {
  const Plan plan = plan_for(cluster(1e9, 1e9), odd_workload(), 1, 2, {.strategy = "byteps_split"});
  EXPECT_EQ(plan.prediction.mid_seconds, 0);
  EXPECT_THAT(traffic_of(lower(plan)).egress_bytes, Each(0));
}

TEST(Lower, RefusesMorePartsThanTagsCanName) {
  Plan plan;
  plan.strategy = "ring";
  plan.ranks.resize(65536);
  plan.parts.bytes.assign(70000, 4);
  plan.parts.offset_bytes.assign(70000, 0);
  plan.parts.server.assign(70000, 0);
  plan.parts.lane.assign(70000, 0);
  EXPECT_ERROR(lower(plan));
}

TEST(Lower, RefusesPassesWhoseNanosecondsHaveNoNumber) {
  PlanOptions options{.strategy = "ring"};
  options.backward_seconds = 500;
  Plan plan = plan_for(cluster(1e9, 1e9), odd_workload(), 2, 0, options);
  ASSERT_EQ(plan.passes->total_seconds(), 500);
  plan.passes->forward_seconds.back() = 501;
  EXPECT_ERROR(lower(plan));
  plan.passes->forward_seconds.back() = 1e300;
  EXPECT_ERROR(lower(plan));
}

} // namespace
} // namespace reckon
