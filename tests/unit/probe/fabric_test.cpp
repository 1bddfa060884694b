// SPDX-License-Identifier: Apache-2.0
#include "probe/fabric.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "fakes.hpp"
#include "probe/sampling.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <set>

namespace reckon {
namespace {

/// A mover whose one lane does something else with writes that carry data.
class Altered final : public Mover, public MoverLane {
public:
  enum class Way { swallow, shift, die };
  Altered(const std::string& transport, Way way) : m_real(make_mover(transport)), m_way(way) {}

  const MoverCapabilities& capabilities() const noexcept override { return m_real->capabilities(); }
  std::span<std::byte> allocate(std::uint64_t bytes) override { return m_real->allocate(bytes); }
  void open(int lanes) override { m_real->open(lanes); }
  std::string address() const override { return m_real->address(); }
  void connect(int self, const std::vector<std::string>& addresses) override {
    m_real->connect(self, addresses);
  }
  MoverLane& lane(int /*index*/) override { return *this; }

  bool write(int peer, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    if (bytes != 0 && m_way == Way::die) {
      static_cast<void>(::raise(SIGKILL));
    }
    if (bytes != 0 && m_way == Way::swallow) {
      return true;
    }
    if (m_way == Way::shift) {
      source.offset = source.offset < 64 ? source.offset + 64 : source.offset - 64;
    }
    return m_real->lane(0).write(peer, source, destination, bytes, tag, id);
  }
  std::size_t poll(std::span<Completion> out) noexcept override {
    return m_real->lane(0).poll(out);
  }
  void wait(std::chrono::nanoseconds limit) noexcept override { m_real->lane(0).wait(limit); }
  std::string error() const override { return m_real->lane(0).error(); }

private:
  std::unique_ptr<Mover> m_real;
  Way m_way;
};

using MakeRank = decltype(FabricCrewOptions::make);

MakeRank altered(Altered::Way way) {
  return [way](const std::string& transport, int /*rank*/) {
    return std::make_unique<Altered>(transport, way);
  };
}

std::unique_ptr<Mover> no_adapter(const std::string& /*transport*/, int /*rank*/) {
  fail(ErrorKind::unavailable, "no such adapter");
}

FabricCrewOptions crew_options(MakeRank make = FabricCrewOptions().make) {
  FabricCrewOptions options;
  options.footprint = 1U << 20U;
  options.make = std::move(make);
  return options;
}

/// 4 writes in flight.
FlowTask series_of(std::vector<Flow> flows, std::uint64_t bytes, std::uint64_t count) {
  FlowTask task;
  task.kind = FlowTask::Kind::series;
  task.flows = std::move(flows);
  task.bytes = bytes;
  task.count = count;
  return task;
}

bool is_gone(pid_t pid) {
  return ::kill(pid, 0) != 0 && errno == ESRCH;
}

template <class Pids>
void expect_gone(const Pids& pids) {
  EXPECT_TRUE(std::all_of(pids.begin(), pids.end(), &is_gone));
}

FabricProbeOptions small_options() {
  FabricProbeOptions options;
  options.machine = "m0";
  options.transports = {"host"};
  options.sizes = {8, 4096, 1U << 20U};
  options.max_pairs = 1;
  options.footprint = 8U << 20U; // two of the longest writes of fabric_aggregate
  options.hang_limit = Seconds(100);
  return options;
}

/// Goes on by 10 ms whenever somebody looks, so that what there is time for does not depend on what
/// else the machine does.
class LookedAtClock final : public Clock {
public:
  [[nodiscard]] Seconds now() const noexcept override { return Seconds(10e-3 * ++m_looks); }

private:
  mutable int m_looks = 0;
};

RunResult measured(const FabricProbeOptions& options, double budget,
                   const Clock& clock = LookedAtClock()) {
  test::FakeGuard guard;
  RunnerOptions running;
  running.budget = Seconds(budget);
  running.interrupted = options.interrupted;
  return run_campaigns(fabric_campaigns(options, clock), running, clock, guard);
}

TEST(FabricPlaces, AreWholePagesOrCacheLinesAndLongEnough) {
  for (std::uint64_t bytes = 1; bytes <= std::uint64_t{64} << 20U; bytes = bytes * 3 / 2 + 1) {
    const std::uint64_t place = place_of_write(bytes);
    EXPECT_GE(place, bytes);
    EXPECT_EQ(place % (bytes >= 4096 ? 4096 : 64), 0U) << bytes;
    EXPECT_LT(place - bytes, bytes >= 4096 ? 4096U : 64U) << bytes;
  }
  EXPECT_GE(fabric_footprint(0), place_of_write(std::uint64_t{64} << 20U)); // the longest write
  // Together the pairs go round 64 MiB or more, however many there are.
  std::uint64_t together = 0;
  for (int pair = 0; pair < 16; ++pair) {
    together += fabric_footprint(2 * pair);
    EXPECT_EQ(fabric_footprint(2 * pair), fabric_footprint(2 * pair + 1));
    EXPECT_GE(together, std::uint64_t{64} << 20U);
  }
}

TEST(FabricCrew, MovesAndChecksAndEndsItsProcesses) {
  std::vector<pid_t> pids;
  {
    FabricCrewOptions options = crew_options();
    options.started = [&](pid_t pid) { pids.push_back(pid); };
    FabricCrew crew("host", 4, std::move(options));
    ASSERT_EQ(pids.size(), 4U);
    // Both pairs at once: the first both ways, the second one way.
    const auto outcomes = crew.run(series_of({{0, 1}, {1, 0}, {2, 3}}, 10000, 50), 4, Seconds(30));
    ASSERT_EQ(outcomes.size(), 4U);
    for (const std::size_t receiver : {0U, 1U, 3U}) {
      const FlowOutcome& o = outcomes[receiver];
      EXPECT_EQ(o.wrong_at, UINT64_MAX);
      EXPECT_GT(o.end_ns, outcomes[receiver ^ 1U].begin_ns);
    }
    EXPECT_EQ(outcomes[2].end_ns, 0); // it received nothing
    // Then the first pair alone.
    EXPECT_EQ(crew.run(series_of({{0, 1}}, 10000, 50), 2, Seconds(30))[1].wrong_at, UINT64_MAX);
    FlowTask ping = series_of({{0, 1}}, 8, 20);
    ping.kind = FlowTask::Kind::ping;
    ping.warm_up = 3;
    EXPECT_EQ(crew.run(ping, 2, Seconds(30))[0].round_trip_s.size(), 20U);
    EXPECT_FALSE(is_gone(pids[0]));
  }
  expect_gone(pids);
}

TEST(FabricCrew, SaysWhatTheTransportSaid) {
  FabricCrew crew("host", 2, crew_options());
  EXPECT_REFUSED(operation, "0: write(host)", crew.run(series_of({{0, 7}}, 64, 1), 2, Seconds(30)));
}

TEST(FabricCrew, NamesTheRankThatDied) {
  FabricCrew crew("host", 2, crew_options(altered(Altered::Way::die)));
  EXPECT_REFUSED(operation, "0 died", crew.run(series_of({{0, 1}}, 64, 3), 2, Seconds(30)));
}

TEST(FabricCampaigns, MeasureEveryCase) {
  std::set<pid_t> pids;
  FabricProbeOptions options = small_options();
  options.started = [&](pid_t pid) { pids.insert(pid); };
  const RunResult result = measured(options, 4);
  EXPECT_LE(pids.size(), 6U); // one crew serves all cells of a pass
  expect_gone(pids);
  std::map<std::string, int> count;
  for (const Cell& cell : result.cells) {
    SCOPED_TRACE(cell.key.text());
    EXPECT_EQ(cell.key.from, "m0");
    EXPECT_EQ(cell.key.to, "m0");
    EXPECT_EQ(cell.key.transport, "host");
    EXPECT_TRUE(cell.key.direction == "one_way" || cell.key.direction == "two_way");
    // Whether time suffices for each is the machine's business; nothing may go wrong.
    EXPECT_TRUE(cell.has_value() || cell.status == CellStatus::skipped) << cell.reason;
    if (!cell.has_value()) {
      continue;
    }
    ++count[cell.key.test];
    EXPECT_GT(cell.key.in_flight, 0);
    EXPECT_GT(cell.p50, 0);
    EXPECT_LE(cell.samples.size(), k_keep_samples);
    const bool aggregate = cell.key.test == k_fabric_aggregate;
    EXPECT_EQ(cell.unit, aggregate ? "bytes_per_second" : "seconds");
    EXPECT_EQ(cell.bytes_convention, aggregate ? "payload" : "");
    EXPECT_EQ(cell.key.pairs, aggregate ? 1 : 0);
    if (cell.key.test == k_fabric_latency) {
      EXPECT_EQ(cell.key.bytes, 8U);
    }
  }
  EXPECT_GT(count[k_fabric_write], 0);
  EXPECT_GT(count[k_fabric_aggregate], 0);
}

TEST(FabricCampaigns, AsManyPairsAsAskedForOrHalfTheProcessors) {
  FabricProbeOptions options = small_options();
  const RunClock clock;
  const auto most_pairs = [&] {
    int most = 0;
    const std::vector<Campaign> campaigns = fabric_campaigns(options, clock);
    for (const CellPlan& plan : campaigns[0].plans) {
      most = std::max(most, plan.key.pairs);
    }
    return most;
  };
  EXPECT_EQ(most_pairs(), 1);
  options.max_pairs = 5;
  EXPECT_EQ(most_pairs(), 4);
  options.max_pairs = 0;
  EXPECT_EQ(most_pairs(), 4);
  for (int cpu = 0; cpu < 64; ++cpu) {
    options.cpus.push_back(cpu);
  }
  EXPECT_EQ(most_pairs(), 32);
}

TEST(FabricCampaigns, WrongDataAreAMismatch) {
  FabricProbeOptions options = small_options();
  options.sizes = {4096};
  options.make = altered(Altered::Way::shift);
  const RunResult result = measured(options, 2);
  EXPECT_GT(result.count(CellStatus::mismatch), 0U);
  for (const Cell& cell : result.cells) {
    if (cell.key.test != k_fabric_latency) { // that one carries no data
      EXPECT_FALSE(cell.has_value()) << cell.key.text();
      EXPECT_TRUE(cell.samples.empty());
    }
  }
}

TEST(FabricCampaigns, WhatHangsIsKilledAndGivenUpAfterThreeTimes) {
  FabricProbeOptions options = small_options();
  options.make = altered(Altered::Way::swallow);
  options.hang_limit = Seconds(0.05);
  std::vector<pid_t> pids;
  options.started = [&](pid_t pid) { pids.push_back(pid); };
  // On a clock that stands still: however long crews take to start, there is time for the next.
  const RunResult result = measured(options, 4, test::FakeClock());
  EXPECT_EQ(result.count(CellStatus::timeout), 3U);
  EXPECT_EQ(pids.size(), 6U); // three crews of two
  expect_gone(pids);
  EXPECT_GT(result.count(CellStatus::failed), 0U);
  for (const Cell& cell : result.cells) {
    EXPECT_FALSE(cell.has_value());
    EXPECT_FALSE(cell.reason.empty());
  }
}

TEST(FabricCampaigns, ATransportThatCannotBeUsedIsUnsupported) {
  FabricProbeOptions options = small_options();
  options.make = &no_adapter;
  const RunResult result = measured(options, 2, test::FakeClock());
  EXPECT_GT(result.count(CellStatus::unsupported), 0U);
  for (const Cell& cell : result.cells) {
    EXPECT_NE(cell.reason.find("no such adapter"), std::string::npos)
        << cell.key.text() << ": " << cell.reason;
  }
}

TEST(FabricCampaigns, AWriteLongerThanTheMemoryIsNotTried) {
  FabricProbeOptions options = small_options();
  options.sizes = {4096, 4U << 20U};
  options.footprint = 1U << 20U; // a machine too busy to give more in time
  const RunResult result = measured(options, 5);
  std::size_t longer = 0;
  for (const Cell& cell : result.cells) {
    if (cell.key.bytes > (1U << 20U)) {
      ++longer;
      EXPECT_EQ(cell.status, CellStatus::skipped) << cell.key.text() << ": " << cell.reason;
    }
    EXPECT_NE(cell.status, CellStatus::failed) << cell.key.text() << ": " << cell.reason;
    EXPECT_EQ(cell.reason.find("signal"), std::string::npos) << cell.reason;
  }
  EXPECT_GT(longer, 0U);
}

TEST(FabricCampaigns, AnInterruptEndsTheProcessesAtOnce) {
  FabricProbeOptions options = small_options();
  options.make = altered(Altered::Way::swallow); // the first cell would hang for long
  std::vector<pid_t> pids;
  bool interrupted = false;
  options.started = [&](pid_t pid) {
    pids.push_back(pid);
    interrupted = pids.size() == 2;
  };
  options.interrupted = [&] { return interrupted; };
  const RunResult result = measured(options, 5);
  EXPECT_TRUE(result.interrupted);
  expect_gone(pids);
  for (const Cell& cell : result.cells) {
    EXPECT_EQ(cell.status, CellStatus::skipped);
    EXPECT_EQ(cell.reason, "interrupted");
  }
}

} // namespace
} // namespace reckon
