// SPDX-License-Identifier: Apache-2.0
// Optimizer steps in the schedule, over a virtual network: the parameters must be those of a
// replica that makes the same steps with the known sums, bit for bit.
#include "strategies/lower.hpp"
#include "support/refusals.hpp"
#include "virtual_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using test::Depends;
using test::Job;
using test::Sources;
using test::stepping_plan;
using testing::HasSubstr;

std::uint64_t count(const Schedule& s, OpKind kind) {
  std::uint64_t found = 0;
  for (const RankProgram& r : s.ranks) {
    for (const LaneProgram& l : r.lanes) {
      found += static_cast<std::uint64_t>(
          std::ranges::count(l.ops(), kind, [](const Op& op) { return op.kind; }));
    }
  }
  return found;
}

TEST(Update, EveryStrategyStepsEveryParameterOnceAndRight) {
  test::for_each_shape({1, 2, 4}, {0, 2}, {1, 2}, [](const test::Shape& shape) {
    const std::uint64_t n = shape.workers;
    const Optimizer optimizer =
        test::k_optimizers[(n + shape.servers + static_cast<std::uint64_t>(shape.lanes)) % 4];
    for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
      const Plan plan = stepping_plan(shape, optimizer, place);
      SCOPED_TRACE(fmt::format("{} {}", name_of(place), name_of(optimizer)));
      const Schedule schedule = lower(plan);
      ASSERT_THAT(check(schedule).faults, testing::IsEmpty());
      // The parts' owners step each part once; or every worker steps every part.
      EXPECT_EQ(count(schedule, OpKind::update),
                plan.parts.size() * (place == UpdatePlace::server ? 1 : n));
      Job job(schedule);
      job.expect_right(3); // states must survive from step to step
      // 3 steps; every worker has all 11078 parameters and a server those of its parts.
      std::uint64_t at_servers = 0;
      for (std::size_t p = 0; p < plan.parts.size(); ++p) {
        const bool alone = !plan.ranks[plan.parts.server[p]].worker;
        at_servers += alone && place == UpdatePlace::server ? plan.parts.bytes[p] : 0;
      }
      EXPECT_EQ(job.found().checked_bytes, 3 * (n * test::k_parameter_bytes + at_servers));
    }
  });
}

TEST(Update, EveryOptimizerAtBothPlaces) {
  for (const Optimizer optimizer : test::k_optimizers) {
    for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
      SCOPED_TRACE(fmt::format("{} {}", name_of(optimizer), name_of(place)));
      const Schedule schedule = lower(stepping_plan({"byteps_split", 3, 2}, optimizer, place));
      Job job(schedule);
      job.expect_right(4);
    }
  }
}

TEST(Update, WhereItIsMadeDoesNotChangeTheTraffic) {
  const auto traffic = [](UpdatePlace place) {
    return traffic_of(lower(stepping_plan({"byteps_split", 4, 2}, Optimizer::sgd, place)));
  };
  EXPECT_EQ(traffic(UpdatePlace::server).egress_bytes, traffic(UpdatePlace::worker).egress_bytes);
  EXPECT_EQ(traffic(UpdatePlace::server).ingress_bytes, traffic(UpdatePlace::worker).ingress_bytes);
}

TEST(Update, AFlippedBitOnTheWayIsFound) {
  for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
    const Schedule schedule =
        lower(stepping_plan({"ps_noncolocated", 2, 1}, Optimizer::momentum, place));
    Job job(schedule);
    const std::uint32_t inbox = 1;
    job.network().set_faults([&, n = 0](const FakeWrite& w) mutable {
      return w.destination.buffer != inbox && ++n == 3 ? FakeFault::corrupted : FakeFault::none;
    });
    EXPECT_GT(job.iterate(0), 0) << name_of(place);
  }
}

TEST(Update, AStepThatWasForgottenIsFoundInTheNextIteration) {
  const Schedule schedule =
      lower(stepping_plan({"ps_colocated", 2}, Optimizer::momentum, UpdatePlace::worker));
  Job job(schedule);
  ASSERT_EQ(job.iterate(0), 0);
  // A state that is lost between iterations: rank 1's velocity.
  ASSERT_EQ(schedule.ranks[1].state_buffers.size(), 1U);
  const std::span<std::byte> velocity = job.buffer(1, schedule.ranks[1].state_buffers[0]);
  std::fill(velocity.begin(), velocity.end(), std::byte{0});
  EXPECT_GT(job.iterate(1), 0);
}

TEST(Update, TheCheckerFindsAStepThatDoesNotWaitForTheSum) {
  Schedule s = lower(stepping_plan({"ps_colocated", 2}, Optimizer::sgd, UpdatePlace::worker));
  test::change_ops(s.ranks[0].lanes[0], [](Op& op, Depends& depends_on, Sources&) {
    if (op.kind == OpKind::update) {
      depends_on.clear();
    }
  });
  EXPECT_THAT(test::fault_of(s), testing::AnyOf(test::Says("instead"), HasSubstr("races")));
}

TEST(Update, TheCheckerFindsAPartThatIsSteppedTwiceOrNever) {
  const Schedule good = lower(stepping_plan({"ring", 3}, Optimizer::adam, UpdatePlace::server));
  Schedule twice = good;
  Schedule never = good;
  LaneProgram& lane = twice.ranks[1].lanes[0];
  for (std::uint32_t i = 0; i < lane.ops().size(); ++i) {
    if (lane.ops()[i].kind == OpKind::update) {
      const Op op = lane.ops()[i];
      const Sources sources(lane.sources(op).begin(), lane.sources(op).end());
      lane.append_over(op, sources, std::span(&i, 1));
      break;
    }
  }
  EXPECT_THAT(test::fault_of(twice), test::Says("already"));
  test::change_ops(never.ranks[1].lanes[0], [](Op& op, Depends&, Sources&) {
    op.bytes -= op.kind == OpKind::update ? 4 : 0;
  });
  EXPECT_THAT(test::fault_of(never), test::Says("make 0"));
}

TEST(Update, TheCheckerFindsStatesOfAnotherPart) {
  Schedule s = lower(stepping_plan({"ps_colocated", 2}, Optimizer::momentum, UpdatePlace::server));
  test::change_ops(s.ranks[0].lanes[0],
                   [first = Slice{}](Op& op, Depends&, Sources& sources) mutable {
                     if (op.kind == OpKind::update) {
                       first = first == Slice{} ? sources[1] : first;
                       sources[1] = first;
                     }
                   });
  EXPECT_THAT(test::fault_of(s), test::Says("states"));
}

TEST(Update, HalvesAreRefused) {
  PlanOptions options;
  options.optimizer = Optimizer::sgd;
  EXPECT_REFUSED(input, "steps are fp32",
                 test::plan_for(test::cluster(1e9, 1e9), test::workload({{"a", 100, DType::bf16}}),
                                2, 0, options));
}

} // namespace
} // namespace reckon
