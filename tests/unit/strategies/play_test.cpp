// SPDX-License-Identifier: Apache-2.0
#include "strategies/play.hpp"

#include "support/refusals.hpp"
#include "support/schedules.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

using namespace test;

/// Ranks with a port of 1000 bytes a second each way.
PlayNetwork ports(std::size_t ranks) {
  PlayNetwork network;
  add_ports(network, ranks, 1000);
  network.quantum_bytes = 100;
  return network;
}

TEST(Play, AWriteTakesItsBytesOverTheRateAndTheLatency) {
  Schedule s = idle(2);
  send(s, 0, 1, 500, 1);
  PlayNetwork network = ports(2);
  network.latency_s = 0.25;
  network.write_overhead_s = 0.5;
  const PlayResult result = play(s, network, no_cost);
  // 0.5 s of bytes, 0.5 s overhead of the first station, 0.25 s of latency; not once for each port.
  EXPECT_NEAR(result.rank_seconds[0], 1.0, 1e-9);
  EXPECT_NEAR(result.rank_seconds[1], 1.25, 1e-9);
  EXPECT_EQ(result.total_seconds, result.rank_seconds[1]);
}

TEST(Play, ASlowReceiverAndAShareOfAThinUplinkBind) {
  Schedule s = idle(4);
  for (const std::uint32_t from : {0U, 1U}) {
    send(s, from, from + 2, 1000, 1);
  }
  PlayNetwork network = ports(4);
  network.station_bytes_per_s[2 * 2 + 1] = 250; // ingress of rank 2
  const PlayResult alone = play(s, network, no_cost);
  EXPECT_NEAR(alone.rank_seconds[2], 4.0, 0.11); // the first piece of 100 comes before it leaves
  EXPECT_NEAR(alone.rank_seconds[3], 1.0, 1e-9);

  network.station_bytes_per_s[2 * 2 + 1] = 1000;
  network.station_bytes_per_s.push_back(500); // what both pairs pass
  network.paths[0][2] = {0, 8, 5};
  network.paths[1][3] = {2, 8, 7};
  const PlayResult shared = play(s, network, no_cost);
  EXPECT_NEAR(shared.total_seconds, 4.0, 0.3); // 2000 bytes at 500 a second
  EXPECT_NEAR(shared.rank_seconds[2], shared.rank_seconds[3], 0.21);
}

TEST(Play, FanInTakesTurnsAtTheIngress) {
  Schedule s = idle(5);
  for (std::uint32_t from = 1; from < 5; ++from) {
    send(s, from, 0, 300, from);
  }
  // 4 x 300 bytes through one ingress; the senders' ports idle meanwhile.
  EXPECT_NEAR(play(s, ports(5), no_cost).total_seconds, 1.2, 1e-9);
}

TEST(Play, ShortWritesOfOnePortGoInTheOrderPostedLongOnesSideBySide) {
  for (const std::uint64_t bytes : {50U, 1000U}) {
    Schedule s = idle(3);
    send(s, 0, 1, bytes, 1);
    send(s, 0, 2, bytes, 1);
    const PlayResult result = play(s, ports(3), no_cost);
    const double one = static_cast<double>(bytes) / 1000;
    EXPECT_NEAR(result.rank_seconds[1], bytes == 50 ? one : 2 * one - 0.1, 1e-9);
    EXPECT_NEAR(result.rank_seconds[2], 2 * one, 1e-9);
  }
}

TEST(Play, ALongWriteWaitsForRoomInsteadOfGoingInCrumbs) {
  // To rank 1 go 30 bytes and 200, to rank 2 200; at most 100 of each are in the port's queue.
  Schedule s = idle(3);
  send(s, 0, 1, 30, 1);
  send(s, 0, 1, 200, 2);
  send(s, 0, 2, 200, 1);
  PlayNetwork network = ports(3);
  // Whatever room there is: 30+70 | 100 | 30+70 | 100 | 30, the second 100 of rank 2 at 0.4 s.
  const PlayResult crumbs = play(s, network, no_cost);
  EXPECT_NEAR(crumbs.rank_seconds[1], 0.43, 1e-9);
  EXPECT_NEAR(crumbs.rank_seconds[2], 0.40, 1e-9);
  // Whole: 30 | 100 | 100 | 100 | 100, rank 2's are the second and the fourth.
  network.least_piece_bytes = 100;
  const PlayResult whole = play(s, network, no_cost);
  EXPECT_NEAR(whole.rank_seconds[1], 0.43, 1e-9);
  EXPECT_NEAR(whole.rank_seconds[2], 0.33, 1e-9);
}

TEST(Play, LocalOpsTakeTurnsOnALaneEarliestFirst) {
  Schedule s = idle(2);
  const Op reduce{.kind = OpKind::reduce, .bytes = 10};
  const std::uint32_t first = s.ranks[0].lanes[0].append(reduce, {});
  s.ranks[0].lanes[0].append(reduce, {});
  write(s, 0, 1, 100, 1, {first});
  await(s, 1, 0, 1);
  const PlayResult result =
      play(s, ports(2), [](std::size_t, const Op& op) { return static_cast<double>(op.bytes); });
  EXPECT_NEAR(result.rank_seconds[0], 20, 1e-9);
  EXPECT_NEAR(result.rank_seconds[1], 10.1, 1e-9);
}

TEST(Play, AHaltIsAnError) {
  Schedule s = idle(2);
  await(s, 1, 0, 1); // nobody writes
  EXPECT_ERROR(play(s, ports(2), no_cost));
}

} // namespace
} // namespace reckon
