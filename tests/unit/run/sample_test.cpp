// SPDX-License-Identifier: Apache-2.0
#include "run/sample.hpp"

#include "launch/peer_error.hpp"

#include <gtest/gtest.h>

#include <array>
#include <sstream>

namespace reckon {
namespace {

TEST(SampleMeter, TakesDifferencesAndAddsTheLanesUp) {
  const SampleMeter meter(1000, 50, {300, 7000});
  const std::array<LaneTimes, 2> lanes{LaneTimes{1, 2, 3, 10}, LaneTimes{10, 20, 30, 100}};
  const RankSample s = meter.sample(1600, 90, {450, 9000}, lanes);
  EXPECT_EQ(s.start_ns, 1000);
  EXPECT_EQ(s.end_ns, 1600);
  EXPECT_EQ(s.compute_ns, 40);
  EXPECT_EQ(s.cpu_ns, 150);
  EXPECT_EQ(s.machine_busy_ns, 2000);
  EXPECT_EQ(s.reduce_ns, 11);
  EXPECT_EQ(s.update_ns, 22);
  EXPECT_EQ(s.wait_ns, 33);
  EXPECT_EQ(s.lane_ns, 110);
}

TEST(RankSample, TravelsByNames) {
  RankSample sent{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, got;
  fields_from_text(got.fields(), fields_to_text(sent.fields()), "rank 1");
  EXPECT_EQ(got.ready_ns, 1);
  EXPECT_EQ(got.end_ns, 2);
  EXPECT_EQ(got.begin_ns, 3);
  EXPECT_EQ(got.start_ns, 4);
  EXPECT_EQ(got.lane_ns, 7);
  EXPECT_EQ(got.machine_busy_ns, 11);
  EXPECT_THROW(fields_from_text(got.fields(), "[1, 2, 3, 4, 5, 6, 7, 8, 9]", "rank 1"), PeerError);
}

TEST(IterationSeconds, AreFromWhenAllCanKnowThatTheLastIsReadyToTheLastCompletion) {
  std::array<RankSample, 2> samples{};
  samples[0].ready_ns = 1'000'000'000;
  samples[0].end_ns = 5'000'000'000;
  samples[1].ready_ns = 2'000'000'000;
  samples[1].end_ns = 4'000'000'000;
  EXPECT_EQ(last_ready_ns(samples), 2'000'000'000);
  // 80 ms from the farthest rank to rank 0 and back: 5 - 2.08.
  samples[0].begin_ns = samples[1].begin_ns = begin_ns(last_ready_ns(samples), 80'000'000);
  EXPECT_DOUBLE_EQ(iteration_seconds(samples), 2.92);
}

TEST(BusyTicks, LeaveOutWhatWasIdleOrWaitedForADisk) {
  // user nice system idle iowait irq softirq steal guest: 1 + 2 + 4 + 32 + 64 + 128
  std::istringstream stat("cpu  1 2 4 8 16 32 64 128 256 0\ncpu0 1 2 4\n");
  EXPECT_EQ(busy_ticks(stat), 231);
  std::istringstream nonsense("cpu  1 2 x");
  EXPECT_EQ(busy_ticks(nonsense), 0);
}

} // namespace
} // namespace reckon
