// SPDX-License-Identifier: Apache-2.0
#include "simulate/player.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace reckon {
namespace {

class GraphPlayer {
public:
  GraphPlayer(const SimGraph& graph, FlowEngine& engine,
              const std::function<void(std::uint64_t)>& progress)
      : m_graph(graph), m_engine(engine), m_progress(progress), m_missing(graph.ops.size(), 0),
        m_lanes(graph.lanes()) {
    find_successors();
    m_connection_of.resize(graph.lanes());
  }

  PlayedGraph run() {
    for (std::uint32_t b = 0; b < m_graph.backgrounds.size(); ++b) {
      at(m_graph.backgrounds[b].start_s, Event::Kind::background, b);
    }
    for (std::uint32_t lane = 0; lane < m_lanes.size(); ++lane) {
      for (std::uint32_t op = m_graph.lane_begin[lane]; op < m_graph.lane_begin[lane + 1]; ++op) {
        if (m_missing[op] == 0) {
          make_ready(lane, op);
        }
      }
      compute_next(lane);
    }
    FlowEngine::Listener listener;
    listener.flow_ended = [this](std::uint32_t flow) { flow_ended(flow); };
    listener.called = [this] { take_due(); };
    if (m_done < m_graph.ops.size()) {
      m_engine.run(std::move(listener));
    }
    if (m_done < m_graph.ops.size()) {
      report_halt();
    }
    for (const Lane& lane : m_lanes) {
      m_result.lane_seconds.push_back(lane.done_s);
      m_result.seconds = std::max(m_result.seconds, lane.done_s);
    }
    return std::move(m_result);
  }

private:
  struct Lane {
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    bool busy = false;
    double done_s = 0;
  };
  /// Writes of a lane along one path.
  struct Connection {
    std::uint32_t lane = 0;
    std::deque<std::uint32_t> posted; ///< the first is on its way
  };
  struct Event {
    enum class Kind : std::uint8_t {
      arrival, ///< of the write that await `index` is for
      computed,
      delayed,
      sent, ///< through shared memory; `index` is the connection
      background,
    };
    double seconds = 0;
    std::uint64_t number = 0; ///< breaks ties in the order of creation
    Kind kind = Kind::arrival;
    std::uint32_t index = 0; ///< op, but where said
    bool operator>(const Event& other) const {
      return std::tie(seconds, number) > std::tie(other.seconds, other.number);
    }
  };

  void find_successors() {
    const std::size_t count = m_graph.ops.size();
    m_successor_begin.assign(count + 1, 0);
    for (std::size_t op = 0; op < count; ++op) {
      for (const std::uint32_t before : m_graph.dependencies_of(op)) {
        ++m_successor_begin[before + 1];
        ++m_missing[op];
      }
      m_missing[op] += m_graph.ops[op].kind == SimGraph::Kind::await ? 1U : 0U;
    }
    for (std::size_t op = 0; op < count; ++op) {
      m_successor_begin[op + 1] += m_successor_begin[op];
    }
    m_successors.resize(m_successor_begin.back());
    std::vector<std::size_t> next(m_successor_begin.begin(), m_successor_begin.end() - 1);
    for (std::size_t op = 0; op < count; ++op) {
      for (const std::uint32_t before : m_graph.dependencies_of(op)) {
        m_successors[next[before]++] = static_cast<std::uint32_t>(op);
      }
    }
  }

  [[nodiscard]] std::uint32_t lane_of(std::uint32_t op) const {
    const auto after = std::upper_bound(m_graph.lane_begin.begin(), m_graph.lane_begin.end(), op);
    return static_cast<std::uint32_t>(after - m_graph.lane_begin.begin() - 1);
  }

  void at(double seconds, Event::Kind kind, std::uint32_t index) {
    m_events.push({seconds, m_number++, kind, index});
    if (!m_taking) {
      ask_for_call();
    }
  }

  /// Unless a call is already coming that is early enough.
  void ask_for_call() {
    if (!m_events.empty() && (m_calls.empty() || m_events.top().seconds < m_calls.top())) {
      m_calls.push(m_events.top().seconds);
      m_engine.call_at(m_events.top().seconds);
    }
  }

  void take_due() {
    const double now = m_engine.now();
    m_calls.pop(); // they come in the order of their times
    m_taking = true;
    while (!m_events.empty() && m_events.top().seconds <= now) {
      const Event event = m_events.top();
      m_events.pop();
      handle(event);
    }
    m_taking = false;
    ask_for_call();
  }

  void handle(const Event& event) {
    if (event.kind == Event::Kind::background) {
      m_engine.start_background(event.index);
      return;
    }
    if (event.kind == Event::Kind::sent) {
      sent(event.index);
      return;
    }
    const std::uint32_t lane = lane_of(event.index);
    if (event.kind == Event::Kind::arrival) {
      if (--m_missing[event.index] == 0) {
        make_ready(lane, event.index);
      }
    } else {
      m_lanes[lane].busy = m_lanes[lane].busy && event.kind != Event::Kind::computed;
      complete(lane, event.index);
    }
    compute_next(lane);
  }

  void complete(std::uint32_t lane, std::uint32_t op) {
    m_lanes[lane].done_s = std::max(m_lanes[lane].done_s, m_engine.now());
    constexpr std::uint64_t k_told = 1 << 12;
    if (++m_done % k_told == 0) {
      m_progress(m_done);
    }
    if (m_done == m_graph.ops.size()) {
      m_engine.stop();
    }
    for (std::size_t i = m_successor_begin[op]; i < m_successor_begin[op + 1]; ++i) {
      if (--m_missing[m_successors[i]] == 0) {
        make_ready(lane, m_successors[i]);
      }
    }
  }

  void make_ready(std::uint32_t lane, std::uint32_t index) {
    const SimGraph::Op& op = m_graph.ops[index];
    switch (op.kind) {
    case SimGraph::Kind::await:
      complete(lane, index);
      break;
    case SimGraph::Kind::write:
      post(lane, index);
      break;
    case SimGraph::Kind::compute:
      m_lanes[lane].ready.push(index);
      break;
    case SimGraph::Kind::delay:
      at(m_engine.now() + op.amount, Event::Kind::delayed, index);
      break;
    }
  }

  void compute_next(std::uint32_t index) {
    Lane& lane = m_lanes[index];
    if (!lane.busy && !lane.ready.empty()) {
      const std::uint32_t op = lane.ready.top();
      lane.ready.pop();
      lane.busy = true;
      at(m_engine.now() + m_graph.ops[op].amount, Event::Kind::computed, op);
    }
  }

  void post(std::uint32_t lane, std::uint32_t op) {
    const std::uint32_t path = m_graph.ops[op].target;
    const auto [found, added] =
        m_connection_of[lane].emplace(path, static_cast<std::uint32_t>(m_connections.size()));
    if (added) {
      m_connections.push_back({lane, {}});
    }
    m_connections[found->second].posted.push_back(op);
    if (m_connections[found->second].posted.size() == 1) {
      send(found->second);
    }
  }

  void send(std::uint32_t connection) {
    const std::uint32_t op = m_connections[connection].posted.front();
    const SimGraph::Op& write = m_graph.ops[op];
    ++m_result.flows;
    if (m_graph.paths[write.target].stations.empty() || write.amount <= 0) {
      at(m_engine.now(), Event::Kind::sent, connection);
      return;
    }
    m_result.most_flows = std::max(m_result.most_flows, ++m_live);
    m_engine.start_flow(connection, write.target, write.amount);
  }

  void flow_ended(std::uint32_t flow) {
    --m_live;
    sent(flow);
  }

  void sent(std::uint32_t connection) {
    const std::uint32_t op = m_connections[connection].posted.front();
    const std::uint32_t lane = m_connections[connection].lane;
    const SimGraph::Op& write = m_graph.ops[op];
    m_connections[connection].posted.pop_front();
    at(m_engine.now() + m_graph.paths[write.target].latency_s, Event::Kind::arrival, write.awaited);
    if (!m_connections[connection].posted.empty()) {
      send(connection);
    }
    complete(lane, op);
    compute_next(lane);
  }

  [[noreturn]] void report_halt() const {
    for (std::uint32_t lane = 0; lane < m_lanes.size(); ++lane) {
      for (std::uint32_t op = m_graph.lane_begin[lane]; op < m_graph.lane_begin[lane + 1]; ++op) {
        if (m_missing[op] > 0) {
          fail(ErrorKind::input,
               fmt::format("the plan came to a halt with {} of {} ops done: in lane {} op {} waits "
                           "for ever",
                           m_done, m_graph.ops.size(), lane, op - m_graph.lane_begin[lane]));
        }
      }
    }
    fail(ErrorKind::internal, "the simulator's engine ended before all ops were done");
  }

  const SimGraph& m_graph;
  FlowEngine& m_engine;
  const std::function<void(std::uint64_t)>& m_progress;
  std::vector<std::uint32_t> m_missing; ///< [op]: what it still waits for
  std::vector<std::size_t> m_successor_begin;
  std::vector<std::uint32_t> m_successors;
  std::vector<Lane> m_lanes;
  std::deque<Connection> m_connections;
  std::vector<std::unordered_map<std::uint32_t, std::uint32_t>> m_connection_of; ///< [lane]: path
  std::priority_queue<Event, std::vector<Event>, std::greater<>> m_events;
  std::uint64_t m_number = 0, m_done = 0, m_live = 0;
  std::priority_queue<double, std::vector<double>, std::greater<>> m_calls; ///< asked for
  bool m_taking = false; ///< take_due() asks for the next call when it is through
  PlayedGraph m_result;
};

} // namespace

PlayedGraph play_graph(const SimGraph& graph, FlowEngine& engine,
                       const std::function<void(std::uint64_t)>& progress) {
  return GraphPlayer(graph, engine, progress).run();
}

} // namespace reckon
