// SPDX-License-Identifier: Apache-2.0
#include "probe/team.hpp"

#include "core/error.hpp"
#include "core/processors.hpp"
#include "support/few_threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <sched.h>
#include <thread>

namespace reckon {
namespace {

TEST(Team, RunsEachRankOnItsProcessor) {
  const std::vector<int> cpus = allowed_cpus();
  Team team(cpus);
  for (int round = 0; round < 50; ++round) {
    std::vector<int> ran(cpus.size(), -1);
    team.run([&](std::size_t rank) { ran[rank] = sched_getcpu(); });
    EXPECT_EQ(ran, cpus);
  }
}

TEST(Team, PassesOnAnExceptionAndGoesOn) {
  Team team({allowed_cpus().front()});
  EXPECT_THROW(team.run([](std::size_t) { fail(ErrorKind::operation, "x"); }), Error);
  int runs = 0;
  team.run([&](std::size_t) { ++runs; });
  EXPECT_EQ(runs, 1);
}

TEST(Team, RefusesAProcessorThatIsNotOurs) {
  EXPECT_THROW(Team({1000}), Error); // CPU_SETSIZE is 1024: a number no machine of ours has
}

TEST(SpinBarrier, NobodyPassesBeforeAllHaveCome) {
  // More threads than processors, so that some must give theirs away.
  const int cpu = allowed_cpus().front();
  constexpr std::size_t k_threads = 4;
  Team team(std::vector<int>(k_threads, cpu));
  SpinBarrier barrier(k_threads);
  std::atomic<int> inside{0};
  std::atomic<int> wrong{0};
  team.run([&](std::size_t) {
    for (int round = 1; round <= 200; ++round) {
      inside.fetch_add(1);
      barrier.wait();
      // All four of this round are in; nobody has begun the next before the second barrier.
      if (inside.load() != round * static_cast<int>(k_threads)) {
        wrong.fetch_add(1);
      }
      barrier.wait();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(Background, EveryThreadHasWorkedOnceWhenItReturnsAndNoneWorksAfterItsEnd) {
  const int cpu = allowed_cpus().front();
  std::array<std::atomic<std::uint64_t>, 3> calls{};
  std::atomic<int> at_work{0};
  std::atomic<bool> ended{false};
  {
    const Background background({cpu, cpu, cpu}, [&](std::size_t rank, std::uint64_t index) {
      ++at_work;
      EXPECT_FALSE(ended);
      EXPECT_EQ(calls.at(rank).load(), index); // 0, 1, 2, ... on each thread
      ++calls.at(rank);
      std::this_thread::yield(); // nearly all of a thread's time passes here, at work
      --at_work;
    });
    for (const auto& count : calls) {
      EXPECT_GE(count.load(), 1U);
    }
  }
  ended = true;
  EXPECT_EQ(at_work, 0); // all threads are joined, not only told to stop
}

TEST(TeamDeathTest, ThreadsThatCannotBeStartedAreAnErrorAndTheOthersEnd) {
  const int cpu = allowed_cpus().front();
  EXPECT_REFUSED_WITH_FEW_THREADS(Team(std::vector<int>(test::k_many_threads, cpu)));
}

} // namespace
} // namespace reckon
