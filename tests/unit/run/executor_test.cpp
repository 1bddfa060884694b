// SPDX-License-Identifier: Apache-2.0
#include "run/executor.hpp"

#include "strategies/lower.hpp"
#include "support/schedules.hpp"
#include "virtual_job.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t allocations = 0; ///< of this thread
}

#ifndef __has_feature // g++
#define __has_feature(what) 0
#endif
#if __has_feature(thread_sanitizer) // has these operators already
extern "C" void __sanitizer_malloc_hook(const volatile void* /*memory*/, std::size_t /*bytes*/) {
  ++allocations;
}
#else
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) {
    return memory;
  }
  throw std::bad_alloc();
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*none*/) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*bytes*/) noexcept {
  std::free(memory);
}
#endif

namespace reckon {
namespace {

using test::Job;

Plan plan_of(const test::Shape& shape, std::uint64_t part_bytes) {
  PlanOptions options;
  options.part_bytes = part_bytes;
  options.window_parts = 8;
  return test::plan_of(
      shape, options,
      {{"a", 30000, DType::fp32}, {"b", 20001, DType::bf16}, {"c", 7777, DType::fp16}});
}

TEST(Executor, EveryStrategySumsRightOverAVirtualNetwork) {
  test::for_each_shape({1, 2, 5}, {0, 1, 3}, {1, 2}, [](const test::Shape& shape) {
    const Schedule schedule = lower(plan_of(shape, 8192));
    Job job(schedule);
    job.expect_right(3); // nothing of an iteration may leak into the next
  });
}

TEST(Executor, SumsInPlaceAreRightWhereverTheServersAre) {
  test::for_each_shape({1, 2, 5}, {0, 1, 3}, {1, 2}, [](const test::Shape& shape) {
    if (!shape.has_servers()) {
      return; // they hand sums on
    }
    Plan plan = plan_of(shape, 8192);
    plan.sums_in_place = true;
    const Schedule schedule = lower(plan);
    Job job(schedule);
    job.expect_right(3);
  });
}

TEST(Executor, WorksWithOneWriteInFlight) {
  const Schedule schedule = lower(plan_of({"byteps_split", 3, 2}, 4096));
  Job job(schedule, 1);
  job.expect_right(1);
}

TEST(Executor, LessTrafficTakesLessVirtualTime) {
  // Equation 7 against equation 1 for n = 4, k = 4: M/B against 1.5 M/B; the network has one write
  // a port at a time, so fill and drain blur it, but the order must hold.
  const auto time = [](const std::string& strategy) {
    const Schedule schedule = lower(plan_of({strategy, 4, 4}, 1024));
    Job job(schedule);
    job.expect_right(1);
    return job.network().clock().now().count();
  };
  EXPECT_LT(time("byteps_split"), time("ring"));
}

TEST(Executor, ACorruptedWriteIsFoundByTheVerification) {
  const Schedule schedule = lower(plan_of({"ring", 3}, 8192));
  Job job(schedule);
  // A bit of a finished sum: in an operand the rounding of the sum could hide it.
  job.network().set_faults([sums = 0](const FakeWrite& w) mutable {
    return w.destination.buffer == k_gradient_buffer && ++sums == 7 ? FakeFault::corrupted
                                                                    : FakeFault::none;
  });
  EXPECT_GT(job.iterate(0), 0);
}

TEST(Executor, AWriteThatIsChangedOnTheWayIsNamedWhereWritesHaveChecksums) {
  test::for_each_shape({1, 2, 5}, {0, 3}, {1, 2}, [](const test::Shape& shape) {
    Schedule schedule = lower(plan_of(shape, 8192));
    expect_arrivals(schedule);
    Job unharmed(schedule);
    unharmed.network().add_checksums();
    unharmed.expect_right(2);
    const std::size_t writes = unharmed.network().calls().size() / 2;
    for (const std::size_t which : {std::size_t{1}, (writes + 1) / 2, writes}) {
      Job job(schedule);
      job.network().add_checksums();
      std::optional<FakeWrite> changed; // signals have no bytes that could be
      job.network().set_faults([&, count = std::size_t{0}](const FakeWrite& w) mutable {
        if (++count < which || changed || w.bytes == 0) {
          return FakeFault::none;
        }
        changed = w;
        return FakeFault::corrupted;
      });
      const int wrong = job.iterate(0);
      if (!changed) {
        continue; // nobody sends anything after that
      }
      EXPECT_EQ(wrong, -1);
      EXPECT_THAT(job.error(),
                  testing::HasSubstr(fmt::format("came from rank {} ", changed->from)));
    }
  });
}

TEST(Executor, AWriteThatIsLostOrFailsIsNamed) {
  const Schedule schedule = lower(plan_of({"ps_colocated"}, 8192));
  for (const auto& [fault, words] :
       {std::pair(FakeFault::lost, "the arrival of part"), std::pair(FakeFault::failed, "fault")}) {
    Job job(schedule);
    job.network().set_faults([fault = fault, writes = 0](const FakeWrite&) mutable {
      return ++writes == 3 ? fault : FakeFault::none;
    });
    EXPECT_EQ(job.iterate(0), -1);
    EXPECT_THAT(job.error(), testing::HasSubstr(words));
  }
}

/// A lane that nobody writes to.
class SilentLane : public MoverLane {
public:
  bool write(int, Slice, Slice, std::uint64_t, std::uint32_t, std::uint64_t) noexcept override {
    return false;
  }
  std::size_t poll(std::span<Completion>) noexcept override { return 0; }
  void wait(std::chrono::nanoseconds) noexcept override {}
  [[nodiscard]] std::string error() const override { return ""; }
};

/// A lane whose first completions are this one; then it fails, so that no test hangs.
class FirstLane final : public SilentLane {
public:
  explicit FirstLane(Completion first) : m_first(first) {}
  std::size_t poll(std::span<Completion> out) noexcept override {
    out[0] = ++m_polls < 100 ? m_first : Completion{Completion::Kind::failed, 0, 0};
    return 1;
  }
  [[nodiscard]] std::string error() const override {
    return m_first.kind == Completion::Kind::failed ? "the cable between the two was pulled out"
                                                    : "";
  }

private:
  Completion m_first;
  int m_polls = 0;
};

TEST(Executor, WhatGoesWrongIsPutIntoWordsOnlyWhenAsked) {
  LaneProgram program;
  program.append_await(0, 1, 5);
  program.append_await(1, 1, 7);
  const std::atomic<bool> stop{false};
  for (const auto& [completion, words] :
       {std::pair(Completion{Completion::Kind::arrived, 6, 0},
                  "a write arrived with tag 6, which nobody waits for"),
        // It arrives again and again: the second time it is nobody's.
        std::pair(Completion{Completion::Kind::arrived, 5, 0},
                  "a write arrived with tag 5, which nobody waits for"),
        std::pair(Completion{Completion::Kind::failed, 0, 0},
                  "the cable between the two was pulled out")}) {
    FirstLane lane(completion);
    LaneExecutor executor(program, lane, {});
    const std::size_t before = allocations;
    executor.run(1, stop);
    EXPECT_EQ(allocations, before);
    EXPECT_TRUE(executor.failed());
    EXPECT_EQ(executor.error(), words);
  }
}

/// Remembers how sums were to be written.
class StoresEngine final : public Engine {
public:
  Started start(const LocalOp& op, std::uint64_t id) noexcept override {
    stores.push_back(op.stores);
    return cpu_engine().start(op, id);
  }
  std::vector<Stores> stores;
};

TEST(Executor, SumsAreWrittenAsTheScheduleSays) {
  class Lane final : public SilentLane {
  public:
    [[nodiscard]] Engine& engine() noexcept override { return the_engine; }
    StoresEngine the_engine;
  } lane;
  LaneProgram program;
  for (const Stores stores : {Stores::streaming, Stores::cached}) {
    program.append_reduce({.stores = stores, .destination = {0, 128}, .bytes = 64},
                          std::vector<Slice>{{0, 0}, {0, 64}}, {});
  }
  std::vector<std::byte> memory(192);
  const std::vector<std::span<std::byte>> buffers{memory};
  LaneExecutor executor(program, lane, buffers);
  executor.start(1);
  while (executor.advance()) {
  }
  EXPECT_TRUE(executor.done());
  EXPECT_THAT(lane.the_engine.stores, testing::ElementsAre(Stores::streaming, Stores::cached));
}

TEST(Executor, OnlySumsBesideTheirOperandsGoAroundTheCaches) {
  test::for_each_shape({3}, {2}, {1}, [](const test::Shape& shape) {
    if (shape.strategy == k_rack_hierarchical) {
      return; // workers sum there, too
    }
    Plan plan = plan_of(shape, 8192);
    plan.stores = Stores::streaming;
    const Schedule schedule = lower(plan);
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      for (const Op& op : schedule.ranks[r].lanes.front().ops()) {
        if (op.kind == OpKind::reduce) {
          EXPECT_EQ(op.stores == Stores::streaming, !schedule.worker[r]) << r;
        }
      }
    }
    Job job(schedule);
    job.expect_right(1);
  });
}

TEST(Executor, DelaysFollowEachOtherAndHoldBackWhatDependsOnThem) {
  LaneProgram program;
  const Op delay{.kind = OpKind::delay, .duration_ns = 2'000'000};
  const std::uint32_t first = program.append(delay, {});
  const std::uint32_t second = program.append(delay, std::span(&first, 1));
  program.append({.kind = OpKind::copy, .destination = {0, 4}, .bytes = 4}, std::span(&second, 1));
  std::vector<std::byte> memory{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4},
                                std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}};
  const std::span<std::byte> buffers[] = {memory};
  SilentLane lane;
  LaneExecutor executor(program, lane, buffers);
  const std::atomic<bool> stop{false};
  for (int i = 0; i < 2; ++i) { // the second time as the first
    std::fill(memory.begin() + 4, memory.end(), std::byte{0});
    const LaneTimes times = executor.run(1, stop);
    EXPECT_GE(times.total_ns, 2 * delay.duration_ns);
    EXPECT_TRUE(executor.done());
    EXPECT_EQ(memory[7], std::byte{4});
  }
}

TEST(Executor, OpsGoInProgramOrderWhenAllAreReady) {
  Schedule s = test::idle(2);
  s.worker = {false, false};
  for (std::uint32_t i = 0; i < 10; ++i) {
    s.ranks[0].buffer_bytes = s.ranks[1].buffer_bytes = {1024};
    test::send(s, 0, 1, 8, i);
  }
  Job job(s);
  job.expect_right(1);
  std::vector<std::uint32_t> tags;
  for (const FakeWrite& w : job.network().calls()) {
    tags.push_back(w.tag);
  }
  EXPECT_TRUE(std::is_sorted(tags.begin(), tags.end()));
}

} // namespace
} // namespace reckon
