// SPDX-License-Identifier: Apache-2.0
#include "probe/sampling.hpp"

#include "documents/cells.hpp"
#include "fakes.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

namespace reckon {
namespace {

using test::FakeClock;

/// Plays `seconds(index)` for operation number index until the sampler is done.
template <class F>
std::uint64_t play(Sampler& sampler, FakeClock& clock, F seconds) {
  std::uint64_t index = 0;
  while (!sampler.done()) {
    Seconds time(0);
    for (std::uint64_t i = 0; i < sampler.batch(); ++i) {
      time += Seconds(seconds(index++));
    }
    clock.advance(time);
    sampler.add(time);
    if (index > 100'000'000) {
      ADD_FAILURE() << "never done";
      break;
    }
  }
  return index;
}

TEST(Sampler, LongOperationsAreTimedOneByOne) {
  FakeClock clock;
  Sampler sampler({.budget = Seconds(1)}, clock);
  play(sampler, clock, [](std::uint64_t) { return 1e-3; });
  EXPECT_EQ(sampler.batch(), 1U);
  EXPECT_GE(sampler.samples().size(), 10U);
  for (const double s : sampler.samples()) {
    EXPECT_NEAR(s, 1e-3, 1e-12);
  }
  EXPECT_NEAR(clock.now().count() - 100, 1, 1e-9); // all of its time
}

TEST(Sampler, ShortOperationsAreTimedInBatches) {
  FakeClock clock;
  Sampler sampler({}, clock); // timer step 50 ns, so a time below 5 us is too short
  play(sampler, clock, [](std::uint64_t) { return 4e-9; });
  // 50 us of 4 ns: 12 500, and no more than grown by a last step of 2.
  EXPECT_GE(static_cast<double>(sampler.batch()) * 4e-9, 40e-6);
  EXPECT_LE(sampler.batch(), 30'000U);
  EXPECT_NEAR(sampler.samples().front(), 4e-9, 1e-15);
}

TEST(Sampler, WarmUpIsThrownAwayUntilItIsStable) {
  FakeClock clock;
  Sampler sampler({.budget = Seconds(2)}, clock);
  // Twenty slow operations first, as on cold caches and a sleeping clock: falling from 21 ms.
  play(sampler, clock,
       [](std::uint64_t i) { return i < 20 ? 1e-3 * static_cast<double>(21 - i) : 1e-3; });
  for (const double s : sampler.samples()) {
    EXPECT_LE(s, 1.11e-3); // stable within a tenth
  }
}

TEST(Sampler, AWholePassBelongsToTheWarmUp) {
  FakeClock clock;
  Sampler sampler({.budget = Seconds(10), .warm_up_operations = 500}, clock);
  std::uint64_t operations = 0;
  while (sampler.warming_up()) {
    operations += sampler.batch();
    clock.advance(Seconds(1e-3));
    sampler.add(Seconds(1e-3));
  }
  EXPECT_GE(operations, 500U);
}

TEST(Sampler, TheBudgetIsHard) {
  FakeClock clock;
  Sampler sampler({.budget = Seconds(0.1)}, clock);
  // Never stable: alternates between 1 and 3 ms, so only the budget can end it.
  play(sampler, clock, [](std::uint64_t i) { return i % 2 == 0 ? 1e-3 : 3e-3; });
  EXPECT_LE(clock.now().count() - 100, 0.1 + 3e-3 + 1e-9);
  EXPECT_GE(sampler.samples().size(), 10U);
}

TEST(Sampler, OneOperationLongerThanTheBudgetStillGivesASample) {
  FakeClock clock;
  Sampler sampler({.budget = Seconds(0.1)}, clock);
  play(sampler, clock, [](std::uint64_t) { return 1.0; });
  EXPECT_EQ(sampler.samples().size(), 1U); // the first is the warm-up's
}

TEST(Sampler, StopsWhenAsked) {
  FakeClock clock;
  bool stop = false;
  Sampler sampler({}, clock, [&] { return stop; });
  for (int i = 0; i < 3; ++i) {
    clock.advance(Seconds(1e-3));
    sampler.add(Seconds(1e-3));
  }
  EXPECT_FALSE(sampler.done());
  stop = true;
  sampler.add(Seconds(1e-3));
  EXPECT_TRUE(sampler.done());
  EXPECT_TRUE(sampler.interrupted());
}

Samples steady(std::size_t n, double seconds) {
  Samples s;
  s.seconds.assign(n, seconds);
  return s;
}

Cell filled(const Samples& samples, const char* test = k_host_memcpy, double bytes = 0) {
  Cell cell = empty_cell({.key = {.test = test}});
  fill_cell(cell, samples, bytes);
  return cell;
}

TEST(FillCell, TurnsTimesIntoRates) {
  Samples s = steady(10, 0.5);
  s.batch = 4;
  const Cell cell = filled(s, k_stream_copy, 1e9);
  EXPECT_EQ(cell.p50, 2e9); // 1e9 bytes in half a second
  EXPECT_EQ(cell.reason, "each sample is the mean of 4 in a row");
}

TEST(Thinned, KeepsAnEvenPartOfManySamples) {
  std::vector<double> samples(1000);
  std::iota(samples.begin(), samples.end(), 10'000.0); // 10000 ... 10999
  const std::vector<double> kept = thinned(samples, 100);
  ASSERT_EQ(kept.size(), 100U);
  EXPECT_EQ(kept[0], 10'000);
  EXPECT_EQ(kept[1], 10'010);
  EXPECT_EQ(kept[99], 10'990);
}

TEST(RemarkSamples, DoubtsWhatVaries) {
  Cell cell = test::cell_with({.test = k_host_memcpy}, {2, 1, 2, 1}); // deviation 0.5 of 1.5
  remark_samples(cell, 1000, 100, cell.spread);
  EXPECT_EQ(cell.status, CellStatus::noisy);
  EXPECT_EQ(cell.reason,
            "samples vary: median absolute deviation 33 %; 1 in 10 of 1000 samples kept");
}

TEST(FillCell, WithoutSamplesTheCellIsSkipped) {
  EXPECT_EQ(filled({}).status, CellStatus::skipped);
  Samples interrupted = steady(5, 1);
  interrupted.interrupted = true;
  const Cell other = filled(interrupted);
  EXPECT_EQ(other.status, CellStatus::skipped);
  EXPECT_EQ(other.reason, "interrupted");
}

TEST(Remark, WhatDecidedStandsFirst) {
  Cell cell;
  remark(cell, "small pages");
  remark(cell, CellStatus::noisy, "others ran");
  EXPECT_EQ(cell.status, CellStatus::noisy);
  EXPECT_EQ(cell.reason, "others ran; small pages");
  remark(cell, CellStatus::mismatch, "also wrong"); // an earlier verdict is kept
  EXPECT_EQ(cell.status, CellStatus::noisy);
  EXPECT_EQ(cell.reason, "others ran; small pages; also wrong");
}

TEST(WholeTime, GoesFromTheFirstStartToTheLastEnd) {
  // The third starts first, the second ends last, the first does neither.
  const std::vector<Timed> parts{{2, 5}, {3, 9}, {1, 4}};
  EXPECT_DOUBLE_EQ(whole_time(parts), 8);
  EXPECT_DOUBLE_EQ(whole_time(std::vector<Timed>{{3, 9}}), 6);
}

TEST(SampleTeam, DividesByTheBatchAndCountsOperations) {
  // A clock that ticks 1 us each time it is read: with one thread every sample takes exactly one
  // tick whatever the batch.
  class TickingClock final : public Clock {
  public:
    [[nodiscard]] Seconds now() const noexcept override { return Seconds(1e-6 * ++m_ticks); }

  private:
    mutable double m_ticks = 0;
  };
  const TickingClock clock;
  Team team({0});
  const SampleLimits limits{.budget = Seconds(1e-3), .timer_step = Seconds(1e-9)};
  std::uint64_t last = 0;
  bool in_order = true;
  const Samples s = sample_team(team, limits, clock,
                                [&](std::size_t, std::uint64_t index) {
                                  in_order = in_order && (index == 0 || index == last + 1);
                                  last = index;
                                },
                                {});
  EXPECT_TRUE(in_order);
  ASSERT_FALSE(s.seconds.empty());
  for (const double seconds : s.seconds) {
    EXPECT_NEAR(seconds * static_cast<double>(s.batch), 1e-6, 1e-12);
  }
}

TEST(SampleTeam, WarmingUpCountsForNoThread) {
  FakeClock clock; // ten operations of 10 s, then those of 1 s
  Team team({0});
  const SampleLimits limits{.budget = Seconds(1e3),
                            .max_samples = 2,
                            .warm_up_time = Seconds(1),
                            .warm_up_operations = 10};
  const Samples s = sample_team(
      team, limits, clock,
      [&](std::size_t, std::uint64_t index) { clock.advance(Seconds(index < 10 ? 10 : 1)); }, {});
  EXPECT_EQ(s.seconds, std::vector<double>(2, 1));
  EXPECT_EQ(s.rank_seconds, std::vector<double>(1, 1));
}

TEST(SampleTeam, ASampleWaitsForTheTimesOfAllThreads) {
  // Only the first thread's operations move the clock, and the second is always the last to end.
  class SharedClock final : public Clock {
  public:
    [[nodiscard]] Seconds now() const noexcept override {
      return Seconds(static_cast<double>(seconds));
    }
    std::atomic<int> seconds{100};
  };
  SharedClock clock;
  Team team({0, 0});
  std::atomic<int> first_ended = 0;
  const Samples s = sample_team(team, {.budget = Seconds(0.5)}, clock,
                                [&](std::size_t rank, std::uint64_t index) {
                                  if (rank == 0) {
                                    ++clock.seconds;
                                    ++first_ended;
                                    return;
                                  }
                                  while (first_ended <= static_cast<int>(index)) {
                                    std::this_thread::yield();
                                  }
                                  for (int i = 0; i < 1000; ++i) {
                                    std::this_thread::yield();
                                  }
                                },
                                {});
  EXPECT_EQ(s.seconds, std::vector<double>(1, 1));
}

TEST(TimerStep, IsTheSmallestStepOfTheClock) {
  class CoarseClock final : public Clock {
  public:
    [[nodiscard]] Seconds now() const noexcept override {
      return Seconds(1e-6 * static_cast<double>(++m_reads / 10)); // moves every tenth reading
    }

  private:
    mutable int m_reads = 0;
  };
  EXPECT_NEAR(measure_timer_step(CoarseClock()).count(), 1e-6, 1e-12);
}

} // namespace
} // namespace reckon
