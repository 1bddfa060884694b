// SPDX-License-Identifier: Apache-2.0
#include "run/pass_crew.hpp"

#include "support/few_threads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace reckon {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t k_ms = 1'000'000;

TEST(RoundsOf, CarryWhatIsLeftToTheNextPass) {
  // Rounds of 2 ms; after each pass 3, 6, 7, 11 ms are due: 1.5 -> 2, 3, 3.5 -> 4, 5.5 -> 6 (halves
  // away from 0), so 2, 1, 1, 2 rounds. Each rounded alone would be 2, 2, 1, 2: 14 ms, not 11.
  const std::vector<std::int64_t> passes{3 * k_ms, 3 * k_ms, 1 * k_ms, 4 * k_ms};
  EXPECT_THAT(rounds_of(passes, 2e-3), ElementsAre(2U, 1U, 1U, 2U));
}

TEST(RoundsOf, AreNeverMoreThanHalfARoundOff) {
  constexpr unsigned k_seed = 20261122;
  SCOPED_TRACE(k_seed);
  std::mt19937 random(k_seed);
  std::uniform_int_distribution<std::int64_t> duration(0, 20 * k_ms);
  std::uniform_real_distribution<double> round(1e-4, 1e-2);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::int64_t> passes(1 + random() % 30);
    for (std::int64_t& p : passes) {
      p = duration(random);
    }
    const double round_s = round(random);
    const std::vector<std::uint64_t> rounds = rounds_of(passes, round_s);
    double due = 0, done = 0;
    for (std::size_t p = 0; p < passes.size(); ++p) {
      due += static_cast<double>(passes[p]) * 1e-9;
      done += static_cast<double>(rounds[p]) * round_s;
      EXPECT_LE(std::abs(due - done), 0.5 * round_s * (1 + 1e-9)) << i;
    }
  }
}

TEST(PassCompute, SaysWhatAndOnHowManyThreads) {
  EXPECT_EQ(parse_pass_compute("gemm_256").threads, 1);
  EXPECT_EQ(parse_pass_compute("gemm_1000:3").operation, "gemm_1000");
  EXPECT_EQ(parse_pass_compute("gemm_1000:3").threads, 3);
  EXPECT_REFUSED(usage, "gemm_256", parse_pass_compute("gemm_257"));
  for (const char* const text : {"gemm_256:", "gemm_256:0", "gemm_256:-1", "gemm_256:2x"}) {
    EXPECT_REFUSED(usage, "whole", parse_pass_compute(text));
  }
}

TEST(PlaceThreads, LanesAloneGoInTurnOverAllProcessors) {
  const std::vector<int> cpus{2, 3, 7};
  EXPECT_THAT(place_threads(cpus, 2, 0, 2, std::nullopt).lanes, ElementsAre(2, 3));
  EXPECT_THAT(place_threads(cpus, 2, 1, 2, std::nullopt).lanes, ElementsAre(7, 2));
  EXPECT_THAT(place_threads({}, 1, 0, 1, std::nullopt).lanes, ElementsAre(-1));
}

TEST(PlaceThreads, ARankWithAMachineOfItsOwnHasItsLanesWhereThePlanHasThem) {
  const std::vector<int> cpus{0, 1, 2, 3};
  const std::vector<int> wanted{3, -1, 9, 3}; // 9: not of this process
  EXPECT_THAT(place_threads(cpus, 4, 0, 1, std::nullopt, wanted).lanes, ElementsAre(3, 1, 2, 3));
  // Beside other ranks all would crowd on the same processors.
  EXPECT_THAT(place_threads(cpus, 4, 0, 2, std::nullopt, wanted).lanes, ElementsAre(0, 1, 2, 3));
  // The plan's processor may be one that computes.
  const std::optional<PassCompute> compute = PassCompute{"gemm_256", 1, true};
  EXPECT_THAT(place_threads(cpus, 2, 0, 1, compute, wanted).lanes, ElementsAre(0, 1));
}

TEST(PlaceThreads, DedicatedNeverShareAProcessor) {
  const std::vector<int> cpus{0, 1, 2, 3, 4, 5};
  const std::optional<PassCompute> compute = PassCompute{"gemm_256", 2, true};
  // Two ranks with two threads each take the last four; lanes have the first two.
  EXPECT_THAT(place_threads(cpus, 1, 0, 2, compute).lanes, ElementsAre(0));
  EXPECT_THAT(place_threads(cpus, 1, 1, 2, compute).lanes, ElementsAre(1));
  EXPECT_THAT(place_threads(cpus, 1, 0, 2, compute).compute, ElementsAre(2, 3));
  EXPECT_THAT(place_threads(cpus, 1, 1, 2, compute).compute, ElementsAre(4, 5));
  // Four ranks want eight: five are there, and one is left to all lanes.
  EXPECT_THAT(place_threads(cpus, 1, 3, 4, compute).lanes, ElementsAre(0));
  EXPECT_THAT(place_threads(cpus, 1, 3, 4, compute).compute, ElementsAre(2, 3));
}

TEST(PlaceThreads, SharedTakeTurnsOnAll) {
  const std::vector<int> cpus{0, 1};
  const std::optional<PassCompute> compute = PassCompute{"gemm_256", 1, false};
  EXPECT_THAT(place_threads(cpus, 1, 1, 2, compute).lanes, ElementsAre(1));
  EXPECT_THAT(place_threads(cpus, 1, 1, 2, compute).compute, ElementsAre(1));
}

TEST(PlaceThreads, RefusesMoreThreadsThanProcessors) {
  const std::vector<int> cpus{0, 1};
  const auto place = [&](int threads, bool dedicated) {
    return place_threads(cpus, 1, 0, 1, PassCompute{"gemm_256", threads, dedicated});
  };
  EXPECT_REFUSED(usage, "--processors", place(2, true));
  EXPECT_NO_THROW(place(2, false));
  EXPECT_REFUSED(usage, "most 2", place(3, false));
}

/// A program with nothing but these passes, each after the one before.
LaneProgram lane_of(const std::vector<std::int64_t>& passes) {
  LaneProgram lane;
  std::vector<std::uint32_t> before;
  for (const std::int64_t pass : passes) {
    before = {lane.append({.kind = OpKind::delay, .duration_ns = pass}, before)};
  }
  return lane;
}

TEST(PassesOfLanes, AreTheSameInAllLanesThatHaveAny) {
  RankProgram program;
  program.lanes = {lane_of({3, 5}), lane_of({}), lane_of({3, 5})};
  EXPECT_THAT(passes_of_lanes(program), ElementsAre(3, 5));
  program.lanes.push_back(lane_of({3, 6}));
  EXPECT_REFUSED(input, "--lanes 1", passes_of_lanes(program));
}

/// Waits until one of the lane's delays is over; nothing after a minute.
std::optional<Delays::Over> wait_for(Delays& delays) {
  for (int i = 0; i < 600'000; ++i) {
    if (const auto over = delays.next_over(0)) {
      return over;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return std::nullopt;
}

TEST(PassCrew, APassOfSeveralLanesIsDoneOnceAndNotBeforeAllHaveComeToIt) {
  PassCrew crew("gemm_256", {-1, -1});
  const LaneProgram program = lane_of({k_ms, k_ms});
  crew.set_passes({3, 2}, 2);
  const std::unique_ptr<Delays> first = crew.delays_of(program), second = crew.delays_of(program);
  std::int64_t end_ns = 0;
  for (std::uint64_t iteration = 1; iteration <= 3; ++iteration) {
    first->reset();
    second->reset();
    for (std::uint32_t op = 0; op < 2; ++op) {
      first->start(op, 0);
      EXPECT_FALSE(first->next_over(0)); // the other has not come
      EXPECT_EQ(crew.rounds_done(), 5 * (iteration - 1) + (op == 0 ? 0 : 3));
      second->start(op, 0);
      const auto here = wait_for(*first), there = wait_for(*second);
      ASSERT_TRUE(here && there);
      EXPECT_EQ(here->op, op);
      EXPECT_EQ(here->end_ns, there->end_ns);
      EXPECT_GT(here->end_ns, end_ns);
      end_ns = here->end_ns;
      EXPECT_FALSE(first->ask_again_ns(0));
    }
    EXPECT_EQ(crew.rounds_done(), 5 * iteration); // 3 and 2, whatever the number of lanes
  }
  EXPECT_GT(crew.busy_ns(), 0);
  EXPECT_EQ(crew.mistake(), "");
}

TEST(PassCrew, WhatEndedFirstIsToldFirstWhateverALaneBeganFirst) {
  // A pass begins when the last lane comes to it: here the second lane decides, pass 1 before 0.
  PassCrew crew("gemm_256", {-1, -1});
  LaneProgram program;
  for (int i = 0; i < 2; ++i) { // neither waits for the other
    program.append({.kind = OpKind::delay, .duration_ns = k_ms}, {});
  }
  crew.set_passes({1, 1}, 2);
  const std::unique_ptr<Delays> first = crew.delays_of(program), second = crew.delays_of(program);
  first->start(0, 0);
  first->start(1, 0);
  second->start(1, 0);
  second->start(0, 0);
  ASSERT_TRUE(wait_for(*second) && wait_for(*second)); // both are over
  const auto one = first->next_over(0), other = first->next_over(0);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->op, 1U);
  EXPECT_EQ(other->op, 0U);
  EXPECT_LT(one->end_ns, other->end_ns);
}

TEST(PassCrew, NoPassEndsBeforeOneThatWasDoneBeforeIt) {
  // Nothing but the accounting: threads overtake each other by passes, and who is the last to tell
  // that its part is done need not be who did it last. The first pass of those that are under way
  // at once has a round, so that the others queue behind it; later ones may find it done.
  constexpr std::size_t k_passes = 20'000, k_at_once = 500;
  PassCrew crew("gemm_256", {-1, -1, -1, -1});
  const LaneProgram program = lane_of(std::vector<std::int64_t>(k_passes, 1));
  std::vector<std::uint64_t> rounds(k_passes, 0);
  for (std::size_t p = 0; p < k_passes; p += k_at_once) {
    rounds[p] = 1;
  }
  crew.set_passes(rounds, 1);
  const std::unique_ptr<Delays> delays = crew.delays_of(program);
  std::int64_t end_ns = 0;
  for (std::uint32_t op = 0; op < k_passes;) {
    // As many at a time as the lane looks through quickly.
    const std::uint32_t until = op + k_at_once;
    for (std::uint32_t next = op; next < until; ++next) {
      delays->start(next, 0);
    }
    for (; op < until; ++op) {
      const auto over = wait_for(*delays);
      ASSERT_TRUE(over);
      ASSERT_EQ(over->op, op);
      ASSERT_GE(over->end_ns, end_ns);
      end_ns = over->end_ns;
    }
  }
}

TEST(PassCrew, APassWithoutRoundsIsOverToo) {
  PassCrew crew("gemm_256", {-1});
  const LaneProgram program = lane_of({1});
  crew.set_passes({0}, 1);
  const std::unique_ptr<Delays> delays = crew.delays_of(program);
  delays->start(0, 0);
  EXPECT_TRUE(wait_for(*delays));
  EXPECT_EQ(crew.rounds_done(), 0U);
}

TEST(PassCrew, APassWithoutRoundsWaitsForOneBeforeItAndForNothingElse) {
  PassCrew crew("gemm_256", {-1});
  const LaneProgram program = lane_of({k_ms, k_ms, k_ms});
  crew.set_passes({0, UINT64_MAX / 2, 0}, 1);
  const std::unique_ptr<Delays> delays = crew.delays_of(program);
  delays->start(0, 0);
  ASSERT_TRUE(delays->next_over(0)) << "no thread has to wake up";
  delays->start(1, 0);
  delays->start(2, 0);
  EXPECT_FALSE(delays->next_over(0));
}

TEST(PassCrew, EndsInTheMiddleOfItsWork) {
  PassCrew crew("gemm_1000", {-1});
  const LaneProgram program = lane_of({k_ms});
  crew.set_passes({UINT64_MAX / 2}, 1);
  const std::unique_ptr<Delays> delays = crew.delays_of(program);
  delays->start(0, 0);
  EXPECT_FALSE(delays->next_over(0));
  EXPECT_TRUE(delays->ask_again_ns(0));
} // the test would hang here

TEST(PassCrewDeathTest, ThreadsThatCannotBeStartedAreAnErrorAndTheOthersEnd) {
  EXPECT_REFUSED_WITH_FEW_THREADS(
      const PassCrew crew("gemm_256", std::vector(test::k_many_threads, -1)));
}

} // namespace
} // namespace reckon
