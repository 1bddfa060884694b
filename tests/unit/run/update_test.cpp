// SPDX-License-Identifier: Apache-2.0
// Optimizer steps in the schedule, over a virtual network: the parameters must be those of a
// replica that makes the same steps with the known sums, bit for bit.
#include "core/error.hpp"
#include "schedule/checker.hpp"
#include "strategies/lower.hpp"
#include "virtual_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using test::Depends;
using test::Job;
using test::Sources;

constexpr Optimizer k_all[] = {Optimizer::sgd, Optimizer::momentum, Optimizer::rmsprop,
                               Optimizer::adam};

Plan plan_of(const test::Shape& shape, Optimizer optimizer, UpdatePlace place) {
  PlanOptions options;
  options.part_bytes = 8192;
  options.window_parts = 2;
  options.optimizer = optimizer;
  options.update_at = place;
  return test::plan_of(shape, options,
                       {{"a", 11000, DType::fp32}, {"b", 77, DType::fp32}, {"c", 1, DType::fp32}});
}

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
        k_all[(n + shape.servers + static_cast<std::uint64_t>(shape.lanes)) % 4];
    for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
      const Plan plan = plan_of(shape, optimizer, place);
      SCOPED_TRACE(fmt::format("{} {}", name_of(place), name_of(optimizer)));
      const Schedule schedule = lower(plan);
      ASSERT_THAT(check(schedule).faults, testing::IsEmpty());
      // The parts' owners step each part once; or every worker steps every part.
      EXPECT_EQ(count(schedule, OpKind::update),
                plan.parts.size() * (place == UpdatePlace::server ? 1 : n));
      Job job(schedule);
      for (std::uint32_t i = 0; i < 3; ++i) { // states must survive from step to step
        ASSERT_EQ(job.iterate(i), 0) << job.error();
      }
      // 3 steps; every worker has all 11078 parameters and a server those of its parts.
      std::uint64_t at_servers = 0;
      for (std::size_t p = 0; p < plan.parts.size(); ++p) {
        const bool alone = !plan.ranks[plan.parts.server[p]].worker;
        at_servers += alone && place == UpdatePlace::server ? plan.parts.bytes[p] : 0;
      }
      EXPECT_EQ(job.found().checked_bytes, 3 * (n * 11078 * 4 + at_servers));
    }
  });
}

TEST(Update, EveryOptimizerAtBothPlaces) {
  for (const Optimizer optimizer : k_all) {
    for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
      const Schedule schedule = lower(plan_of({"byteps_split", 3, 2}, optimizer, place));
      Job job(schedule);
      for (std::uint32_t i = 0; i < 4; ++i) {
        EXPECT_EQ(job.iterate(i), 0)
            << name_of(optimizer) << " at " << name_of(place) << ": " << job.error();
      }
    }
  }
}

TEST(Update, WhereItIsMadeDoesNotChangeTheTraffic) {
  const auto traffic = [](UpdatePlace place) {
    return traffic_of(lower(plan_of({"byteps_split", 4, 2}, Optimizer::sgd, place)));
  };
  EXPECT_EQ(traffic(UpdatePlace::server).egress_bytes, traffic(UpdatePlace::worker).egress_bytes);
  EXPECT_EQ(traffic(UpdatePlace::server).ingress_bytes, traffic(UpdatePlace::worker).ingress_bytes);
}

TEST(Update, AFlippedBitOnTheWayIsFound) {
  for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
    const Schedule schedule = lower(plan_of({"ps_noncolocated", 2, 1}, Optimizer::momentum, place));
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
      lower(plan_of({"ps_colocated", 2}, Optimizer::momentum, UpdatePlace::worker));
  Job job(schedule);
  ASSERT_EQ(job.iterate(0), 0);
  // A state that is lost between iterations: rank 1's velocity.
  ASSERT_EQ(schedule.ranks[1].state_buffers.size(), 1U);
  const std::span<std::byte> velocity = job.buffer(1, schedule.ranks[1].state_buffers[0]);
  std::fill(velocity.begin(), velocity.end(), std::byte{0});
  EXPECT_GT(job.iterate(1), 0);
}

TEST(Update, TheCheckerFindsAStepThatDoesNotWaitForTheSum) {
  Schedule s = lower(plan_of({"ps_colocated", 2}, Optimizer::sgd, UpdatePlace::worker));
  test::change_ops(s.ranks[0].lanes[0], [](Op& op, Depends& depends_on, Sources&) {
    if (op.kind == OpKind::update) {
      depends_on.clear();
    }
  });
  const CheckResult result = check(s);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.faults.front(),
              testing::AnyOf(testing::HasSubstr("instead of every worker once"),
                             testing::HasSubstr("races")));
}

TEST(Update, TheCheckerFindsAPartThatIsSteppedTwiceOrNever) {
  const Schedule good = lower(plan_of({"ring", 3}, Optimizer::adam, UpdatePlace::server));
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
  EXPECT_THAT(check(twice).faults.front(), testing::HasSubstr("made a step already"));
  test::change_ops(never.ranks[1].lanes[0], [](Op& op, Depends&, Sources&) {
    op.bytes -= op.kind == OpKind::update ? 4 : 0;
  });
  EXPECT_THAT(check(never).faults.front(), testing::HasSubstr("make 0 steps instead of one"));
}

TEST(Update, TheCheckerFindsStatesOfAnotherPart) {
  Schedule s = lower(plan_of({"ps_colocated", 2}, Optimizer::momentum, UpdatePlace::server));
  test::change_ops(s.ranks[0].lanes[0],
                   [first = Slice{}](Op& op, Depends&, Sources& sources) mutable {
                     if (op.kind == OpKind::update) {
                       first = first == Slice{} ? sources[1] : first;
                       sources[1] = first;
                     }
                   });
  EXPECT_THAT(check(s).faults.front(), testing::HasSubstr("states have made a step already"));
}

TEST(Update, HalvesAreRefused) {
  PlanOptions options;
  options.optimizer = Optimizer::sgd;
  try {
    static_cast<void>(test::plan_for(test::cluster(1e9, 1e9),
                                     test::workload({{"a", 100, DType::bf16}}), 2, 0, options));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_THAT(e.what(), testing::HasSubstr("steps are fp32"));
  }
}

} // namespace
} // namespace reckon
