// SPDX-License-Identifier: Apache-2.0
// Iterations that save by copy on write, over a virtual network: what is saved must be what a
// replica had before the step, every byte once; and what the checker must find.
#include "schedule/snapshot.hpp"

#include "run/checkpoint_files.hpp"
#include "strategies/lower.hpp"
#include "support/refusals.hpp"
#include "virtual_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using test::Job;
using test::k_parameter_bytes;
using test::stepping_plan;
using testing::HasSubstr;
using testing::IsEmpty;

/// Calls f(schedule) for every strategy, place and optimizer with some numbers of ranks.
template <class F>
void for_many_schedules(F f) {
  test::for_each_shape({1, 2, 4}, {0, 2}, {1, 2}, [&](const test::Shape& shape) {
    for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
      SCOPED_TRACE(name_of(place));
      f(lower(stepping_plan(shape,
                            test::k_optimizers[(shape.workers + shape.servers +
                                                static_cast<std::uint64_t>(shape.lanes)) %
                                               4],
                            place)));
    }
  });
}

TEST(Snapshot, SavesWhatAReplicaHadBeforeTheStepEveryByteOnce) {
  for_many_schedules([](const Schedule& usual) {
    const Schedule saving = with_snapshot(usual);
    ASSERT_THAT(check(saving).faults, IsEmpty());
    std::uint64_t bytes = 0;
    for (const RankProgram& rank : saving.ranks) {
      bytes += saved_bytes(rank);
    }
    EXPECT_EQ(bytes, k_parameter_bytes * (1 + state_arrays(usual.optimizer)));
    EXPECT_EQ(traffic_of(saving).egress_bytes, traffic_of(usual).egress_bytes);

    Job job(saving);
    TestValues values(
        static_cast<std::uint32_t>(std::count(usual.worker.begin(), usual.worker.end(), true)));
    std::vector<ParameterReplica> before; // one step behind the job's own
    for (std::size_t r = 0; r < usual.ranks.size(); ++r) {
      before.emplace_back(usual, r, values);
    }
    for (std::uint32_t i = 0; i < 3; ++i) {
      ASSERT_EQ(job.iterate(i), 0) << job.error();
      for (std::size_t r = 0; r < usual.ranks.size(); ++r) {
        const Views buffers = job.buffers(r);
        const RankVerification copies = before[r].compare(buffers, copies_of(saving.ranks[r]), i);
        EXPECT_EQ(copies.first_error, "");
        EXPECT_EQ(copies.checked_bytes, saved_bytes(saving.ranks[r]));
        before[r].step(i);
        EXPECT_EQ(before[r].compare(buffers, saving.ranks[r].kept, i + 1).first_error, "");
      }
    }
  });
}

TEST(Snapshot, WhatIsSavedComesBackToAllThatHoldIt) {
  for_many_schedules([](const Schedule& usual) {
    EXPECT_THAT(check(restoring(with_snapshot(usual))).faults, IsEmpty());
  });
}

TEST(Snapshot, AnotherPlanOfTheSameRanksTakesEverythingOver) {
  // Every pair of schemes, places of the step, and lanes, with the same ranks and optimizer.
  for (const auto& [n, k] : {std::pair<std::uint64_t, std::uint64_t>{2, 2}, {4, 2}, {3, 0}}) {
    for (const Optimizer optimizer : {Optimizer::sgd, Optimizer::adam}) {
      std::vector<Schedule> all;
      for (const char* strategy : {"ring", "ps_colocated", "byteps_split"}) {
        for (const UpdatePlace place : {UpdatePlace::server, UpdatePlace::worker}) {
          for (const int lanes : {1, 2}) {
            all.push_back(lower(stepping_plan({strategy, n, k, lanes}, optimizer, place)));
          }
        }
      }
      for (const Schedule& before : all) {
        const Schedule saving = with_snapshot(before);
        for (const Schedule& next : all) {
          if (before.ranks.size() != next.ranks.size()) {
            continue; // a ring has no servers
          }
          const Schedule carry = carrying(saving, next);
          ASSERT_THAT(check(carry).faults, IsEmpty());
          for (std::size_t r = 0; r < next.ranks.size(); ++r) {
            ASSERT_EQ(carry.ranks[r].buffer_bytes.size(), next.ranks[r].buffer_bytes.size() + 1);
            EXPECT_EQ(carry.ranks[r].buffer_bytes.back(), saved_bytes(saving.ranks[r]));
          }
        }
      }
    }
  }
}

TEST(Snapshot, WorkersThatAllStepShareTheSavingEvenly) {
  // 8 parts: 5 of 8192, one of 44000 - 5 x 8192 = 3040, 308 and 4 bytes. In turn to the rank that
  // has least: no rank is more than one part of 8192 ahead of another.
  const Schedule saving =
      with_snapshot(lower(stepping_plan({"ring", 4}, Optimizer::sgd, UpdatePlace::worker)));
  std::vector<std::uint64_t> bytes;
  for (const RankProgram& rank : saving.ranks) {
    bytes.push_back(saved_bytes(rank));
  }
  const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
  EXPECT_GT(*least, 0U);
  EXPECT_LE(*most - *least, 8192U);
}

TEST(Snapshot, OnlyServersSaveWhereOnlyTheyStep) {
  const Schedule saving = with_snapshot(
      lower(stepping_plan({"ps_noncolocated", 2, 2}, Optimizer::momentum, UpdatePlace::server)));
  EXPECT_EQ(saved_bytes(saving.ranks[0]) + saved_bytes(saving.ranks[1]), 0U);
  EXPECT_EQ(saved_bytes(saving.ranks[2]) + saved_bytes(saving.ranks[3]), 2 * k_parameter_bytes);
}

TEST(Snapshot, SumsAloneHaveNothingToSave) {
  PlanOptions options;
  options.strategy = "ring";
  const Schedule sums = lower(test::plan_for(
      test::cluster(1e9, 1e9), test::workload({{"a", 100, DType::fp32}}), 2, 0, options));
  EXPECT_ERROR(with_snapshot(sums));
}

class SnapshotFaults : public testing::Test {
protected:
  SnapshotFaults()
      : m_saving(with_snapshot(
            lower(stepping_plan({"ps_colocated", 2}, Optimizer::adam, UpdatePlace::worker)))) {}

  [[nodiscard]] bool saves(std::uint32_t rank, const Op& op) const {
    return op.kind == OpKind::copy &&
           op.destination.buffer == m_saving.ranks[rank].buffer_bytes.size() - 1;
  }
  /// Changes each op of rank 0's lane, or each that makes a copy to save.
  template <class F>
  void change_lane(F change) {
    test::change_ops(m_saving.ranks[0].lanes[0], [&](Op& op, std::vector<std::uint32_t>& depends_on,
                                                     test::Sources&) { change(op, depends_on); });
  }
  template <class F>
  void change_copies(F change) {
    change_lane([&](Op& op, std::vector<std::uint32_t>&) {
      if (saves(0, op)) {
        change(op);
      }
    });
  }
  [[nodiscard]] std::string fault() const { return test::fault_of(m_saving); }
  /// What the checker says of a stretch that comes to nobody.
  static auto says_lost(const KeptRun& gone) {
    return HasSubstr(fmt::format("array {} from gradient byte {} is not restored", gone.array,
                                 gone.gradient_offset));
  }
  Schedule m_saving;
};

TEST_F(SnapshotFaults, ACopyThatTheStepDoesNotWaitFor) {
  bool first = true;
  change_lane([&](Op& op, std::vector<std::uint32_t>& depends_on) {
    if (op.kind == OpKind::update && first) {
      first = false;
      depends_on.pop_back(); // the last of its copies
    }
  });
  EXPECT_THAT(fault(), testing::AnyOf(HasSubstr("races"), HasSubstr("after its step")));
}

TEST_F(SnapshotFaults, ACopyOfTheWrongPlaceOrLength) {
  const Schedule good = m_saving;
  for (const auto& [change, words] : std::vector<std::pair<void (*)(Op&), const char*>>{
           {[](Op& op) { op.source.offset = 0; }, "writes something else to where is saved"},
           {[](Op& op) { op.bytes -= 4; }, "writes something else to where is saved"},
           {[](Op& op) { op.bytes = 0; }, "is saved 0 times"}}) {
    m_saving = good;
    change_copies(change);
    EXPECT_THAT(fault(), HasSubstr(words));
  }
}

TEST_F(SnapshotFaults, ACopyMadeTwice) {
  LaneProgram& lane = m_saving.ranks[0].lanes[0];
  const auto it = std::find_if(lane.ops().begin(), lane.ops().end(),
                               [&](const Op& op) { return saves(0, op); });
  const Op again = *it;
  lane.append(again, {});
  EXPECT_THAT(fault(), test::Says("saved 2"));
}

TEST_F(SnapshotFaults, AStretchThatNobodySaves) {
  const SavedRun dropped = m_saving.ranks[0].saved.back();
  m_saving.ranks[0].saved.pop_back();
  change_copies([&](Op& op) { op.bytes = op.destination == dropped.copy ? 0 : op.bytes; });
  EXPECT_THAT(fault(), HasSubstr(fmt::format("array {}: gradient byte {} is not saved",
                                             dropped.kept.array, dropped.kept.gradient_offset)));
}

TEST_F(SnapshotFaults, AStretchThatTwoRanksSave) {
  // Rank 1 keeps the same; a copy of its own to the end of a longer buffer.
  const KeptRun kept = m_saving.ranks[0].saved.front().kept;
  RankProgram& rank = m_saving.ranks[1];
  const auto buffer = static_cast<std::uint32_t>(rank.buffer_bytes.size() - 1);
  const SavedRun mine{{kept.array, kept.gradient_offset, kept.bytes, kept.at},
                      {buffer, rank.buffer_bytes[buffer]}};
  rank.buffer_bytes[buffer] += kept.bytes;
  rank.saved.push_back(mine);
  rank.lanes[0].append(
      {.kind = OpKind::copy, .source = mine.kept.at, .destination = mine.copy, .bytes = kept.bytes},
      {});
  EXPECT_THAT(fault(), test::Says("saved"));
}

TEST_F(SnapshotFaults, AStateThatIsSavedAsAnother) {
  for (SavedRun& run : m_saving.ranks[0].saved) {
    run.kept.array = run.kept.array == 1 ? 2 : run.kept.array == 2 ? 1 : 0;
  }
  EXPECT_THAT(fault(), test::Says("there"));
}

TEST_F(SnapshotFaults, ACopyThatIsUsedForSomethingElse) {
  const SavedRun run = m_saving.ranks[0].saved.front();
  m_saving.ranks[0].lanes[0].append({.kind = OpKind::copy,
                                     .source = run.copy,
                                     .destination = run.kept.at,
                                     .bytes = run.kept.bytes},
                                    {});
  EXPECT_THAT(fault(), test::Says("reads"));
}

TEST_F(SnapshotFaults, AWriteThatRestoresTheWrongPlace) {
  Schedule back = restoring(m_saving);
  bool first = true;
  test::change_ops(back.ranks[0].lanes[0],
                   [&](Op& op, std::vector<std::uint32_t>&, test::Sources&) {
                     op.destination.offset += first && op.kind == OpKind::write ? 8192 : 0;
                     first = false;
                   });
  EXPECT_THAT(test::fault_of(back), test::Says("where"));
}

TEST_F(SnapshotFaults, AStretchThatIsNotTakenOver) {
  // What each rank with something had last is nowhere in the next plan then.
  for (std::size_t r = 0; r < m_saving.ranks.size(); ++r) {
    Schedule less = m_saving;
    if (less.ranks[r].saved.empty()) {
      continue;
    }
    const auto gone = less.ranks[r].saved.back().kept;
    less.ranks[r].saved.pop_back();
    const Schedule next =
        lower(stepping_plan({"ps_colocated", 2}, Optimizer::adam, UpdatePlace::worker));
    EXPECT_THAT(test::fault_of(carrying(less, next)), says_lost(gone));
  }
}

TEST_F(SnapshotFaults, AStretchThatIsNotBroughtBack) {
  Schedule back = restoring(m_saving);
  // Rank 1 claims to have saved less than it has: what only it had is nowhere then.
  const auto gone = back.ranks[1].saved.back().kept;
  back.ranks[1].saved.pop_back();
  EXPECT_THAT(test::fault_of(back), says_lost(gone));
}

} // namespace
} // namespace reckon
