// SPDX-License-Identifier: Apache-2.0
#include "strategies/play.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

/// Ranks with a port of 1000 bytes a second each way: station 2 r is rank r's egress, 2 r + 1 its
/// ingress.
PlayNetwork ports(std::size_t ranks, double rate = 1000) {
  PlayNetwork network;
  network.station_bytes_per_s.assign(2 * ranks, rate);
  network.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  for (std::uint32_t from = 0; from < ranks; ++from) {
    for (std::uint32_t to = 0; to < ranks; ++to) {
      network.paths[from][to] = {2 * from, 2 * to + 1};
    }
  }
  network.quantum_bytes = 100;
  return network;
}

Schedule idle(std::size_t ranks) {
  Schedule s;
  s.worker.assign(ranks, true);
  s.ranks.resize(ranks);
  for (RankProgram& r : s.ranks) {
    r.lanes.resize(1);
  }
  return s;
}

std::uint32_t write(Schedule& s, std::uint32_t from, std::uint32_t to, std::uint64_t bytes,
                    std::uint32_t tag, std::vector<std::uint32_t> after = {}) {
  Op op{.kind = OpKind::write, .peer = to, .tag = tag, .bytes = bytes};
  return s.ranks[from].lanes[0].append(op, after);
}

std::uint32_t await(Schedule& s, std::uint32_t at, std::uint32_t from, std::uint32_t tag) {
  Op op{.kind = OpKind::await, .peer = from, .tag = tag};
  return s.ranks[at].lanes[0].append(op, {});
}

double no_cost(std::size_t /*rank*/, const Op& /*op*/) {
  return 0;
}

TEST(Play, AWriteTakesItsBytesOverTheRateAndTheLatency) {
  Schedule s = idle(2);
  write(s, 0, 1, 500, 1);
  await(s, 1, 0, 1);
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
    write(s, from, from + 2, 1000, 1);
    await(s, from + 2, from, 1);
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
    write(s, from, 0, 300, from);
    await(s, 0, from, from);
  }
  // 4 x 300 bytes through one ingress; the senders' ports idle meanwhile.
  EXPECT_NEAR(play(s, ports(5), no_cost).total_seconds, 1.2, 1e-9);
}

TEST(Play, ShortWritesOfOnePortGoInTheOrderPostedLongOnesSideBySide) {
  for (const std::uint64_t bytes : {50U, 1000U}) {
    Schedule s = idle(3);
    write(s, 0, 1, bytes, 1);
    write(s, 0, 2, bytes, 1);
    await(s, 1, 0, 1);
    await(s, 2, 0, 1);
    const PlayResult result = play(s, ports(3), no_cost);
    const double one = static_cast<double>(bytes) / 1000;
    EXPECT_NEAR(result.rank_seconds[1], bytes == 50 ? one : 2 * one - 0.1, 1e-9);
    EXPECT_NEAR(result.rank_seconds[2], 2 * one, 1e-9);
  }
}

TEST(Play, ALongWriteWaitsForRoomInsteadOfGoingInCrumbs) {
  // To rank 1 go 30 bytes and 200, to rank 2 200; at most 100 of each are in the port's queue.
  Schedule s = idle(3);
  write(s, 0, 1, 30, 1);
  write(s, 0, 1, 200, 2);
  write(s, 0, 2, 200, 1);
  await(s, 1, 0, 1);
  await(s, 1, 0, 2);
  await(s, 2, 0, 1);
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
  Op reduce;
  reduce.kind = OpKind::reduce;
  reduce.bytes = 10;
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
