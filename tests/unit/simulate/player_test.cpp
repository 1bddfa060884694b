// SPDX-License-Identifier: Apache-2.0
#include "simulate/player.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>

namespace reckon {
namespace {

/// Each flow takes its bytes at 1 byte a second, over the slow hop at a third, whatever else flows;
/// remembers when each began.
class LonelyFlows final : public FlowEngine {
public:
  struct Start {
    double at;
    std::uint32_t path, hop;
    double bytes;
    bool operator==(const Start&) const = default;
  };
  std::vector<Start> starts;
  std::vector<double> backgrounds;
  std::uint32_t slow_hop = 99; ///< takes three times as long

  void start_flow(std::uint32_t flow, std::uint32_t path, std::uint32_t hop,
                  double bytes) override {
    starts.push_back({m_now, path, hop, bytes});
    const double seconds = slow_hop == hop ? 3 * bytes : bytes;
    m_events.emplace(std::pair(m_now + seconds, m_number++),
                     [this, flow] { m_listener.flow_ended(flow); });
  }
  void start_background(std::uint32_t) override { backgrounds.push_back(m_now); }
  [[nodiscard]] double background_bytes(std::uint32_t) const override { return 0; }
  void call_at(double seconds) override {
    EXPECT_GE(seconds, m_now);
    m_events.emplace(std::pair(seconds, m_number++), [this] { m_listener.called(); });
  }
  [[nodiscard]] double now() const override { return m_now; }
  void run(Listener listener) override {
    m_listener = std::move(listener);
    while (!m_events.empty() && !m_stopped) {
      const auto first = m_events.begin();
      const std::function<void()> happen = first->second;
      m_now = first->first.first;
      m_events.erase(first);
      happen();
    }
  }
  void stop() override { m_stopped = true; }

private:
  std::map<std::pair<double, int>, std::function<void()>> m_events;
  Listener m_listener;
  double m_now = 0;
  int m_number = 0;
  bool m_stopped = false;
};

class PlayerTest : public ::testing::Test {
protected:
  PlayerTest() {
    graph.hosts = 2;
    graph.station_bytes_per_s = {1};
    graph.paths = {{0, 1, 0.5, {{0}}}, {1, 0, 0.5, {{0}}}};
  }
  std::uint32_t op(SimGraph::Kind kind, double amount, const std::vector<std::uint32_t>& after = {},
                   std::uint32_t target = 0, std::uint32_t awaited = 0) {
    graph.append({kind, target, awaited, amount}, after);
    return static_cast<std::uint32_t>(graph.ops.size() - 1);
  }
  PlayedGraph play() {
    return play_graph(graph, engine, [](std::uint64_t) {});
  }

  SimGraph graph;
  LonelyFlows engine;
};

using Kind = SimGraph::Kind;

TEST_F(PlayerTest, AConnectionSendsOneWriteAfterAnotherAndLatencyKeepsNoLink) {
  // Lane 0 writes 3 and 2 bytes; lane 1 awaits both: the second leaves when the first has left, at
  // 3 s, and comes at 5 + 0.5 s.
  op(Kind::write, 3, {}, 0, 2);
  op(Kind::write, 2, {}, 0, 3);
  graph.end_lane();
  op(Kind::await, 0);
  op(Kind::await, 0);
  graph.end_lane();
  const PlayedGraph played = play();
  EXPECT_EQ(engine.starts, (std::vector<LonelyFlows::Start>{{0, 0, 0, 3}, {3, 0, 0, 2}}));
  EXPECT_EQ(played.lane_seconds, (std::vector<double>{5, 5.5}));
  EXPECT_EQ(played.seconds, 5.5);
  EXPECT_EQ(played.flows, 2U);
  EXPECT_EQ(played.most_flows, 1U);
}

TEST_F(PlayerTest, WhatALaterHopIsTooSlowForWaitsBetweenThem) {
  // Writes of 3, 2 and 1 bytes. They leave the first hop at 3, 5 and 6 s, whatever becomes of them;
  // the second, a third as fast, takes them from 0 to 9, to 15 and to 18 s, and 0.5 s later they
  // come.
  graph.paths[0].hops = {{0}, {0}};
  engine.slow_hop = 1;
  for (std::uint32_t i = 0; i < 3; ++i) {
    op(Kind::write, 3.0 - i, {}, 0, 4 + i);
  }
  op(Kind::delay, 1, {2}); // from 6 s on, when the last has left
  graph.end_lane();
  for (std::uint32_t i = 0; i < 3; ++i) {
    op(Kind::await, 0);
    graph.end_lane();
  }
  const PlayedGraph played = play();
  EXPECT_EQ(played.lane_seconds, (std::vector<double>{7, 9.5, 15.5, 18.5}));
  using Starts = std::vector<LonelyFlows::Start>;
  EXPECT_EQ(
      engine.starts,
      (Starts{
          {0, 0, 0, 3}, {0, 0, 1, 3}, {3, 0, 0, 2}, {5, 0, 0, 1}, {9, 0, 1, 2}, {15, 0, 1, 1}}));
  EXPECT_EQ(played.flows, 3U);
  EXPECT_EQ(played.most_flows, 3U);
}

TEST_F(PlayerTest, AWriteIsThereWhenItHasCrossedTheSlowestHopWhicheverThatIs) {
  graph.paths[0].hops = {{0}, {0}, {0}};
  op(Kind::write, 2, {}, 0, 2);
  op(Kind::write, 1, {}, 0, 3);
  graph.end_lane();
  op(Kind::await, 0);
  graph.end_lane();
  op(Kind::await, 0);
  graph.end_lane();
  engine.slow_hop = 0; // 0 to 6, to 9
  EXPECT_EQ(play().lane_seconds, (std::vector<double>{9, 6.5, 9.5}));
}

TEST_F(PlayerTest, LanesAndPathsAreConnectionsOfTheirOwn) {
  graph.paths.push_back({0, 0, 0, {{0}}});
  op(Kind::write, 3, {}, 0, 3);
  op(Kind::write, 2, {}, 2, 4);
  graph.end_lane();
  op(Kind::write, 1, {}, 0, 5);
  graph.end_lane();
  op(Kind::await, 0);
  op(Kind::await, 0);
  op(Kind::await, 0);
  graph.end_lane();
  EXPECT_EQ(play().most_flows, 3U);
  EXPECT_EQ(engine.starts.size(), 3U);
  EXPECT_EQ(engine.starts.back().at, 0);
}

TEST_F(PlayerTest, ALaneComputesOneOpAtATimeEarliestFirstAndDelaysKeepNothing) {
  const std::uint32_t delay = op(Kind::delay, 1); // until 1
  op(Kind::compute, 2);                           // 0 to 2
  op(Kind::compute, 4, {delay});                  // ready at 1: 2 to 6
  op(Kind::compute, 8);                           // ready at 0, but later in order: 0 to ... no
  graph.end_lane();
  // At 2 both are ready, and the earlier goes first: 2 to 6, then 6 to 14.
  const std::uint32_t first = op(Kind::compute, 1);
  op(Kind::delay, 3, {first}); // beside what follows
  op(Kind::compute, 2);
  graph.end_lane();
  EXPECT_EQ(play().lane_seconds, (std::vector<double>{14, 4}));
}

TEST_F(PlayerTest, WritesInSharedMemoryTakeOnlyTheLatency) {
  graph.paths[0].hops.clear();
  op(Kind::write, 1e9, {}, 0, 2);
  op(Kind::write, 1e9, {}, 0, 3);
  graph.end_lane();
  op(Kind::await, 0);
  op(Kind::await, 0);
  graph.end_lane();
  EXPECT_EQ(play().lane_seconds, (std::vector<double>{0, 0.5}));
  EXPECT_TRUE(engine.starts.empty());
}

TEST_F(PlayerTest, EmptyWritesArriveToo) {
  op(Kind::write, 0, {}, 0, 1);
  graph.end_lane();
  op(Kind::await, 0);
  graph.end_lane();
  EXPECT_EQ(play().seconds, 0.5);
}

TEST_F(PlayerTest, BackgroundsBeginWhenTheyShall) {
  graph.backgrounds = {{0, 1, 2.5}, {1, 1, 0}};
  op(Kind::compute, 10);
  graph.end_lane();
  EXPECT_EQ(play().seconds, 10);
  EXPECT_EQ(engine.backgrounds, (std::vector<double>{0, 2.5}));
}

TEST_F(PlayerTest, NothingToDoTakesNoTime) {
  graph.end_lane();
  EXPECT_EQ(play().seconds, 0);
}

TEST_F(PlayerTest, AHaltIsAnErrorThatNamesTheLane) {
  graph.end_lane();
  op(Kind::compute, 1);
  op(Kind::await, 0);
  graph.end_lane();
  EXPECT_REFUSED(input, "lane 1", play());
}

} // namespace
} // namespace reckon
