// SPDX-License-Identifier: Apache-2.0
#include "movers/paced.hpp"

#include "movers/fake.hpp"
#include "stats/random.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace reckon {
namespace {

/// Ranks in one process, in virtual time: the network below takes no time itself, or what a test
/// says.
class Ranks {
public:
  explicit Ranks(const StationNetwork& network, double inner_s = 0)
      : m_fake(
            static_cast<int>(network.paths.size()),
            [inner_s](int, int, std::uint64_t) { return Seconds(inner_s); }, 4096) {
    m_fake.used_from_one_thread();
    std::vector<std::string> addresses;
    for (std::size_t rank = 0; rank < network.paths.size(); ++rank) {
      m_movers.push_back(make_paced_mover(m_fake.make_mover(static_cast<int>(rank)),
                                          static_cast<int>(rank), network,
                                          rank == 0 ? &record : nullptr, m_fake.clock()));
      m_source.push_back(m_movers.back()->allocate(1 << 20));
      m_target.push_back(m_movers.back()->allocate(1 << 20));
      m_movers.back()->open(1);
      addresses.push_back(m_movers.back()->address());
    }
    for (std::size_t rank = 0; rank < m_movers.size(); ++rank) {
      m_movers[rank]->connect(static_cast<int>(rank), addresses);
    }
  }

  void write(int from, int to, std::uint64_t bytes, std::uint32_t tag) {
    m_source[static_cast<std::size_t>(from)][0] = static_cast<std::byte>(tag);
    ASSERT_TRUE(m_movers[static_cast<std::size_t>(from)]->lane(0).write(to, {0, 0}, {1, 0}, bytes,
                                                                        tag, 1000 + tag));
  }

  /// Until `count` writes have arrived and been sent, in steps of virtual time of `step`.
  void run(std::size_t count, std::chrono::nanoseconds step = std::chrono::microseconds(1)) {
    std::array<Completion, 16> completions;
    for (int turns = 0; turns < 2'000'000 && (arrived.size() < count || sent.size() < count);
         ++turns) {
      for (auto& mover : m_movers) {
        const std::size_t got = mover->lane(0).poll(completions);
        for (std::size_t i = 0; i < got; ++i) {
          const Completion& c = completions[i];
          ASSERT_NE(c.kind, Completion::Kind::failed);
          (c.kind == Completion::Kind::arrived ? arrived[c.tag]
                                               : sent[static_cast<std::uint32_t>(c.id - 1000)]) =
              m_fake.clock().now().count();
        }
      }
      m_movers.front()->lane(0).wait(step);
    }
    ASSERT_EQ(arrived.size(), count);
    ASSERT_EQ(sent.size(), count);
  }
  void end() { m_movers.clear(); }
  [[nodiscard]] double now() const { return m_fake.clock().now().count(); }
  [[nodiscard]] std::byte first_byte_at(std::size_t rank) const { return m_target[rank][0]; }
  Mover& mover(std::size_t rank) { return *m_movers[rank]; }

  PacingRecord record;
  std::map<std::uint32_t, double> arrived, sent; ///< virtual time, by tag

private:
  FakeNetwork m_fake;
  std::vector<std::unique_ptr<Mover>> m_movers;
  std::vector<std::span<std::byte>> m_source, m_target;
};

/// Every pair 1 ms and 100 MB/s on its own, between ports of 125 MB/s.
StationNetwork pairs(std::size_t ranks) {
  StationNetwork n;
  n.station_bytes_per_s.assign(2 * ranks, 125e6);
  n.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  n.latency_s = 1e-3;
  for (std::uint32_t a = 0; a < ranks; ++a) {
    for (std::uint32_t b = 0; b < ranks; ++b) {
      if (a != b) {
        n.paths[a][b] = {2 * a, static_cast<std::uint32_t>(n.station_bytes_per_s.size()),
                         2 * b + 1};
        n.station_bytes_per_s.push_back(100e6);
      }
    }
  }
  return n;
}

constexpr double k_step = 3e-6; // virtual time moves in steps of 1 us

TEST(Paced, AWriteArrivesWhenTheTableSaysAndIsSentWhenItHasLeft) {
  for (const std::uint64_t bytes : {0ULL, 8ULL, 65536ULL, 1000000ULL}) {
    SCOPED_TRACE(bytes);
    const StationNetwork n = pairs(2);
    Ranks ranks(n);
    ranks.write(0, 1, bytes, 7);
    EXPECT_EQ(ranks.first_byte_at(1), std::byte{0});
    ranks.run(1);
    EXPECT_NEAR(ranks.arrived.at(7), n.write_seconds(0, 1, static_cast<double>(bytes)), k_step);
    // A millisecond and 10 ns a byte; out of the port at 8 ns a byte, in pieces of 64 KiB.
    EXPECT_NEAR(ranks.arrived.at(7), 1e-3 + 1e-8 * static_cast<double>(bytes), k_step);
    EXPECT_NEAR(ranks.sent.at(7), 8e-9 * static_cast<double>(bytes), k_step);
    EXPECT_EQ(ranks.first_byte_at(1), bytes > 0 ? std::byte{7} : std::byte{0});
    ranks.end();
    EXPECT_EQ(ranks.record.writes, 1U);
    EXPECT_EQ(ranks.record.late, 0U);
  }
}

TEST(Paced, ASlowFirstPortIsWaitedForBesideTheLatency) {
  StationNetwork n = pairs(2);
  n.station_bytes_per_s[0] = 50e6; // rank 0's egress; all that follows is faster
  for (const std::uint64_t bytes : {1000ULL, 65536ULL, 1000000ULL}) {
    SCOPED_TRACE(bytes);
    Ranks ranks(n);
    ranks.write(0, 1, bytes, 7);
    ranks.run(1);
    EXPECT_NEAR(ranks.arrived.at(7), 1e-3 + 2e-8 * static_cast<double>(bytes), k_step);
    EXPECT_NEAR(ranks.sent.at(7), 2e-8 * static_cast<double>(bytes), k_step);
  }
}

TEST(Paced, CurvesOfPairsAreFollowed) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    StationNetwork n = pairs(2);
    n.station_busy.resize(n.station_bytes_per_s.size());
    const double slope = 1e-9 * static_cast<double>(1 + uniform_index(random, 50));
    n.station_busy[n.paths[0][1][1]] =
        BusyCurve({{4096, 1e-4}, {100'000, 1e-4 + 1e5 * slope}, {1'000'000, 2e-4 + 1e6 * slope}});
    n.path_latency_s = {{0, 1e-6 * static_cast<double>(uniform_index(random, 3000))}, {1e-3, 0}};
    const std::uint64_t bytes = 1 + uniform_index(random, 1'000'000);
    Ranks ranks(n);
    ranks.write(0, 1, bytes, 7);
    ranks.run(1, std::chrono::microseconds(20));
    EXPECT_NEAR(ranks.arrived.at(7), n.write_seconds(0, 1, static_cast<double>(bytes)), 25e-6);
  }
}

TEST(Paced, WritesOneAfterTheOtherAreWaitedForOnce) {
  const StationNetwork n = pairs(2);
  Ranks ranks(n);
  for (std::uint32_t tag = 0; tag < 10; ++tag) {
    ranks.write(0, 1, 100'000, tag);
  }
  ranks.run(10);
  // 1 ms of latency once, then 1 ms for each 100 kB.
  for (std::uint32_t tag = 0; tag < 10; ++tag) {
    EXPECT_NEAR(ranks.arrived.at(tag), 1e-3 * (2 + tag), k_step);
  }
}

TEST(Paced, PortsAreSharedByWhoeverUsesThem) {
  // 800 kB each by two ranks into rank 1, whose ingress does 125 MB/s, and by rank 0 to both
  // others, which share its egress: 12.8 ms and the latency.
  const StationNetwork n = pairs(3);
  const double piece = 65536 / 125e6;
  for (const auto& [from, to] : {std::pair(2, 1), std::pair(0, 2)}) {
    Ranks ranks(n);
    ranks.write(0, 1, 800'000, 1);
    ranks.write(from, to, 800'000, 2);
    ranks.run(2);
    EXPECT_NEAR(std::max(ranks.arrived.at(1), ranks.arrived.at(2)), 13.8e-3, piece);
    // They take turns: none is done much before the other.
    EXPECT_NEAR(ranks.arrived.at(1), ranks.arrived.at(2), 2 * piece);
  }
}

TEST(Paced, WhatTheTransportTakesLongerIsCounted) {
  StationNetwork n = pairs(2);
  Ranks ranks(n, 5e-3); // the transport itself takes 5 ms, the emulated link 1 ms + 1 ms
  ranks.write(0, 1, 100'000, 1);
  ranks.run(1);
  // The second piece goes 0.1 ms before the first has left the port, 65536 B at 125 MB/s, so that
  // it is in time where the transport takes no longer than that; here it takes 5 ms.
  const double arrived = 5e-3 + 65536 / 125e6 - 1e-4;
  EXPECT_NEAR(ranks.arrived.at(1), arrived, k_step);
  ranks.end();
  EXPECT_EQ(ranks.record.late, 1U);
  EXPECT_NEAR(ranks.record.worst_late_s, arrived - 2e-3, k_step); // due after 1 ms + 1 ms
}

TEST(Paced, WaitsUntilTheNextThingIsDueAndNotLonger) {
  const StationNetwork n = pairs(2);
  Ranks ranks(n);
  ranks.write(0, 1, 65536, 1);
  std::array<Completion, 4> completions;
  MoverLane& receiver = ranks.mover(1).lane(0);
  int waits = 0;
  while (receiver.poll(completions) == 0 && waits < 100) {
    receiver.wait(std::chrono::milliseconds(20));
    ++waits;
  }
  // The write of no time below, then the sleep until it is due: no spinning.
  EXPECT_LE(waits, 3);
  EXPECT_NEAR(ranks.now(), 1e-3 + 655.36e-6, k_step);
}

TEST(Paced, RefusesRanksOfAnotherMachineOrNetwork) {
  const StationNetwork n = pairs(2);
  FakeNetwork fake(2, [](int, int, std::uint64_t) { return Seconds(0); });
  auto mover = make_paced_mover(fake.make_mover(0), 0, n, nullptr, fake.clock());
  mover->open(1);
  std::string other = mover->address();
  const auto boot = other.find("\"boot\":\"") + 8;
  other[boot] = other[boot] == '0' ? '1' : '0';
  EXPECT_REFUSED(unavailable, "1 runs", mover->connect(0, {mover->address(), other}));
  EXPECT_ERROR(mover->connect(0, {mover->address()}));
}

} // namespace
} // namespace reckon
