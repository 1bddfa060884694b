// SPDX-License-Identifier: Apache-2.0
#include "probe/flows.hpp"

#include "core/error.hpp"
#include "movers/fake.hpp"
#include "stats/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace reckon {
namespace {

using namespace std::chrono_literals;

TEST(ArrivalRate, IsTheSlopeOfWhatArrived) {
  // 100 bytes every 10 ns: 1e10 bytes a second, whatever arrived before.
  std::vector<Progressed> points;
  for (int i = 0; i < 20; ++i) {
    points.push_back({1000 + 10 * i, 5000 + 100 * static_cast<std::uint64_t>(i)});
  }
  EXPECT_NEAR(arrival_rate(points, 0, 10'000), 1e10, 1);
  EXPECT_NEAR(arrival_rate(points, 1050, 1101), 1e10, 1); // six of them
  // The end does not belong to the window: of 1000, 1010, 1020 it has two, and two do not tell.
  EXPECT_EQ(arrival_rate(points, 1000, 1020), 0);
  EXPECT_NEAR(arrival_rate(points, 1000, 1021), 1e10, 1);
  EXPECT_EQ(arrival_rate({}, 0, 100), 0);
  EXPECT_EQ(arrival_rate(std::vector<Progressed>{{5, 1}, {5, 2}, {5, 3}}, 0, 10), 0);
}

TEST(ArrivalRate, ClumpsShiftItLessThanOneWrite) {
  // Arrivals come in clumps of up to 8, as from a receiver that is woken now and then. 400 writes
  // of 64 KiB in 1 s: the slope stays within 1 %, where first and last may be off by 8 of 400, 2 %.
  constexpr double k_write = 65536, k_gap_ns = 2.5e6;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<Progressed> points;
    for (int i = 0; i < 400;) {
      i += 1 + static_cast<int>(uniform_index(random, 8));
      points.push_back({static_cast<std::int64_t>(i * k_gap_ns),
                        static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(k_write)});
    }
    EXPECT_NEAR(arrival_rate(points, 0, 2'000'000'000) / (k_write / k_gap_ns * 1e9), 1, 0.01);
  }
}

TEST(Merged, AddsUpWhatFlowsBroughtInOrderOfTime) {
  const std::vector<Progressed> a{{10, 100}, {30, 200}}, b{{10, 7}, {20, 14}};
  const std::vector<Progressed> all = merged({a, b});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].ns, 10);
  EXPECT_EQ(all[0].bytes, 107U);
  EXPECT_EQ(all[1].ns, 20);
  EXPECT_EQ(all[1].bytes, 114U);
  EXPECT_EQ(all[2].ns, 30);
  EXPECT_EQ(all[2].bytes, 214U);
  EXPECT_TRUE(merged({}).empty());
}

TEST(WindowRates, LanesThatTakeTurnsOnAPortAreNoFasterThanIt) {
  // A port at 12.5 MB/s lets a write of 65536 bytes through every 5.24288 ms, of one lane after the
  // other, in turns of 1 to 10 writes. Evenly spaced arrivals have exactly the port's rate as
  // slope, whoever they belong to. In a lane's turn it has all of it: the sum of lanes is up to
  // theirs.
  constexpr double k_port = 12.5e6;
  constexpr std::uint64_t k_write = 65536, k_gap_ns = 5'242'880;
  const FlowTask task{.warm_up_ns = 80'000'000, .window_ns = 100'000'000, .windows = 3};
  int misled = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<std::vector<Progressed>> lanes(4);
    for (std::uint64_t i = 0, left = 0, lane = 0; i < 80; ++i, --left) {
      if (left == 0) {
        lane = uniform_index(random, lanes.size());
        left = 1 + uniform_index(random, 10);
      }
      const std::uint64_t before = lanes[lane].empty() ? 0 : lanes[lane].back().bytes;
      lanes[lane].push_back({static_cast<std::int64_t>(i * k_gap_ns), before + k_write});
    }
    double sum = 0;
    for (const std::vector<Progressed>& lane : lanes) {
      sum += arrival_rate(lane, 80'000'000, 180'000'000);
    }
    misled += sum > 1.5 * k_port ? 1 : 0;
    for (const double rate : window_rates(task, {lanes.begin(), lanes.end()})) {
      EXPECT_NEAR(rate, k_port, 1e-6 * k_port);
    }
  }
  EXPECT_GT(misled, 20); // what this is about does happen
}

TEST(WindowRates, AreThoseOfTheWholeWhereOneWindowTellsNothing) {
  // 100 bytes every 40 ns: windows of 100 ns hold two or three; all 300 ns hold eight.
  const FlowTask task{.warm_up_ns = 20, .window_ns = 100, .windows = 3};
  std::vector<Progressed> points;
  for (int i = 0; i < 10; ++i) {
    points.push_back({40 * i, 100 * static_cast<std::uint64_t>(i + 1)});
  }
  const std::vector<double> rates = window_rates(task, {points});
  ASSERT_EQ(rates.size(), 3U);
  for (const double rate : rates) {
    EXPECT_NEAR(rate, 2.5e9, 1);
  }
}

TEST(FlowText, ComesBackAsItWas) {
  FlowTask task;
  task.kind = FlowTask::Kind::ping;
  task.flows = {{3, 1}, {0, 2}};
  task.lanes = {0, 2};
  task.bytes = 65536;
  task.in_flight = 7;
  task.first = 99;
  task.warm_up_ns = 5;
  task.window_ns = 1'000'000'007;
  task.windows = 3;
  task.warm_up = 11;
  task.count = 13;
  EXPECT_EQ(decode_task(encode(task)), task);
  task.kind = FlowTask::Kind::series;
  task.keep_load = true;
  task.cpu = 1;
  EXPECT_EQ(decode_task(encode(task)), task);
  FlowOutcome outcome;
  outcome.rates = {{1.5, 2.5e9}, {0, 0.1}};
  outcome.total = {1.5, 2.6e9};
  outcome.round_trip_s = {1e-6 / 3};
  EXPECT_EQ(decode_flow_outcome(encode(outcome)), outcome);
  outcome.begin_ns = (std::int64_t{1} << 53U) + 2; // of a machine that is up for 104 days
  outcome.end_ns = outcome.begin_ns + 4;
  outcome.wrong_at = 4711;
  EXPECT_EQ(decode_flow_outcome(encode(outcome)), outcome);
  EXPECT_THROW(static_cast<void>(decode_task("{}")), Error);
  EXPECT_THROW(static_cast<void>(decode_flow_outcome("[")), Error);
}

/// Ranks in one process, over a network in virtual time.
class Ranks {
public:
  explicit Ranks(int ranks, FakeNetwork::Faults faults = {})
      : m_network(ranks, [](int, int, std::uint64_t) { return Seconds(1e-4); }) {
    if (faults) {
      m_network.set_faults(std::move(faults));
    }
    std::vector<std::string> addresses;
    for (int rank = 0; rank < ranks; ++rank) {
      FlowRank::Options options;
      options.rank = rank;
      options.lanes = 2;
      options.memory = 1U << 20U;
      m_ranks.push_back(std::make_unique<FlowRank>(m_network.make_mover(rank), options));
      addresses.push_back(m_ranks.back()->address());
    }
    for (auto& rank : m_ranks) {
      rank->connect(addresses);
    }
  }
  std::vector<FlowOutcome> run(const FlowTask& task) {
    for (auto& rank : m_ranks) {
      rank->prepare(task);
      rank->begin();
    }
    std::vector<FlowOutcome> outcomes;
    for (auto& rank : m_ranks) {
      while (!rank->finished_within(100ms)) {
      }
      outcomes.push_back(rank->outcome());
    }
    return outcomes;
  }
  FlowRank& rank(std::size_t i) { return *m_ranks[i]; }
  [[nodiscard]] std::vector<FakeWrite> calls() const { return m_network.calls(); }

private:
  FakeNetwork m_network;
  std::vector<std::unique_ptr<FlowRank>> m_ranks;
};

FlowTask fan_in() {
  return {.flows = {{1, 0}, {2, 0}, {0, 1}},
          .lanes = {0, 1},
          .bytes = 4096,
          .window_ns = 10'000'000,
          .windows = 2};
}

TEST(FlowRank, EveryFlowArrivesAtItsReceiverAndIsVerified) {
  Ranks ranks(3);
  for (std::uint64_t first = 0; first < 3; ++first) { // again and again over the same lanes
    FlowTask task = fan_in();
    task.first = first;
    const std::vector<FlowOutcome> outcomes = ranks.run(task);
    EXPECT_EQ(outcomes[0].rates.size(), 2U); // from 1 and from 2
    EXPECT_EQ(outcomes[1].rates.size(), 1U);
    EXPECT_TRUE(outcomes[2].rates.empty());
    for (const FlowOutcome& outcome : outcomes) {
      EXPECT_EQ(outcome.wrong_at, UINT64_MAX);
      for (const auto& windows : outcome.rates) {
        EXPECT_EQ(windows.size(), 2U);
      }
    }
  }
}

TEST(FlowRank, WrongDataAreNoticed) {
  Ranks ranks(3, [](const FakeWrite& write) {
    return write.from == 2 && write.bytes > 0 ? FakeFault::corrupted : FakeFault::none;
  });
  // Also when there was time for one write only, as for a thread that the machine keeps waiting.
  for (const std::int64_t warm_up_ns : {0, -1'000'000'000}) {
    FlowTask task = fan_in();
    task.warm_up_ns = warm_up_ns;
    const std::vector<FlowOutcome> outcomes = ranks.run(task);
    EXPECT_NE(outcomes[0].wrong_at, UINT64_MAX);
    EXPECT_EQ(outcomes[1].wrong_at, UINT64_MAX); // from 0 alone
  }
}

TEST(FlowRank, ALaneThatBreaksSaysSo) {
  Ranks ranks(2, [](const FakeWrite& write) {
    return write.from == 1 ? FakeFault::failed : FakeFault::none;
  });
  const FlowTask task{.flows = {{1, 0}}, .bytes = 4096, .window_ns = 1'000'000, .windows = 1};
  ranks.rank(1).prepare(task);
  ranks.rank(1).begin();
  while (!ranks.rank(1).finished_within(100ms)) {
  }
  EXPECT_THROW(static_cast<void>(ranks.rank(1).outcome()), Error);
}

// TCP calls sent what the kernel's buffers hold, and how much that is nobody knows.
TEST(FlowRank, AStreamHasNoMoreOnTheWayThanItsReceiverAllows) {
  Ranks ranks(2, [](const FakeWrite& write) {
    return write.bytes > 0 ? FakeFault::lost : FakeFault::none; // sent, and never there
  });
  const FlowTask task{
      .flows = {{1, 0}}, .bytes = 4096, .in_flight = 8, .window_ns = 1'000'000, .windows = 1};
  for (const std::size_t rank : {0U, 1U}) {
    ranks.rank(rank).prepare(task);
    ranks.rank(rank).begin();
  }
  EXPECT_FALSE(ranks.rank(1).finished_within(100ms)); // credits are missing
  ranks.rank(0).stop();
  ranks.rank(1).stop();
  EXPECT_LE(std::ranges::count_if(ranks.calls(), [](const FakeWrite& w) { return w.bytes > 0; }),
            8);
}

TEST(FlowRank, CanBeStoppedWhenNothingComes) {
  Ranks ranks(2);
  const FlowTask task{.flows = {{1, 0}}, .bytes = 4096, .window_ns = 1'000'000, .windows = 1};
  ranks.rank(0).prepare(task);
  ranks.rank(0).begin(); // rank 1 never does
  EXPECT_FALSE(ranks.rank(0).finished_within(10ms));
  ranks.rank(0).stop();
  EXPECT_TRUE(ranks.rank(0).finished_within(0ms));
}

TEST(FlowRank, PingTimesEveryRoundTripAtTheOneWhoBegins) {
  Ranks ranks(4);
  const FlowTask task{.kind = FlowTask::Kind::ping,
                      .flows = {{0, 3}, {2, 1}},
                      .bytes = 8,
                      .warm_up = 5,
                      .count = 20};
  const std::vector<FlowOutcome> outcomes = ranks.run(task);
  EXPECT_EQ(outcomes[0].round_trip_s.size(), 20U);
  EXPECT_EQ(outcomes[2].round_trip_s.size(), 20U);
  EXPECT_TRUE(outcomes[1].round_trip_s.empty());
  EXPECT_TRUE(outcomes[3].round_trip_s.empty());
}

TEST(FlowRank, EchoSendsLongWritesThatTheReceiverChecks) {
  for (const bool corrupted : {false, true}) {
    Ranks ranks(4, [corrupted](const FakeWrite& write) {
      return corrupted && write.from == 2 ? FakeFault::corrupted : FakeFault::none;
    });
    const FlowTask task{.kind = FlowTask::Kind::echo,
                        .flows = {{0, 3}, {2, 1}},
                        .bytes = 30'000, // both ends of 16 KiB are looked at
                        .first = 7,
                        .warm_up = 2,
                        .count = 20}; // more than there are places for: the last ones are checked
    const std::vector<FlowOutcome> outcomes = ranks.run(task);
    EXPECT_EQ(outcomes[0].round_trip_s.size(), 20U);
    EXPECT_EQ(outcomes[2].round_trip_s.size(), 20U);
    EXPECT_TRUE(outcomes[1].round_trip_s.empty());
    EXPECT_EQ(outcomes[1].wrong_at != UINT64_MAX, corrupted);
    EXPECT_EQ(outcomes[3].wrong_at, UINT64_MAX);
  }
}

TEST(FlowRank, RefusesWhatDoesNotFitIntoItsMemory) {
  Ranks ranks(2);
  FlowTask task = fan_in();
  task.flows = {{1, 0}};
  task.bytes = 1U << 20U; // two lanes, so half of the memory each
  EXPECT_EQ(ranks.rank(0).slots(task.bytes, 1, 2), 0U);
  EXPECT_EQ(ranks.rank(0).slots(task.bytes / 4, 1, 2), 2U);
  EXPECT_THROW(ranks.rank(0).prepare(task), Error);
}

} // namespace
} // namespace reckon
