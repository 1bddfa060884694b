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
        m_hops_left(graph.ops.size(), 0), m_lanes(graph.lanes()) {
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
    std::uint32_t first_flow = 0;                ///< of its hops, which are neighbours
    std::vector<std::deque<std::uint32_t>> hops; ///< [hop]: the first is on its way
  };
  struct Flow {
    std::uint32_t connection = 0, hop = 0;
  };
  struct Event {
    enum class Kind : std::uint8_t {
      arrival, ///< of the write that await `index` is for
      computed,
      delayed,
      crossed, ///< a hop that takes no time; `index` is the flow
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
    if (event.kind == Event::Kind::crossed) {
      crossed(event.index);
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
      for (std::uint32_t b = 0; b < m_graph.backgrounds.size(); ++b) {
        m_result.background_bytes.push_back(m_engine.background_bytes(b));
      }
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
      const std::size_t hops = std::max<std::size_t>(1, m_graph.paths[path].hops.size());
      m_connections.push_back({lane, static_cast<std::uint32_t>(m_flows.size()), {}});
      m_connections.back().hops.resize(hops);
      for (std::uint32_t hop = 0; hop < hops; ++hop) {
        m_flows.push_back({found->second, hop});
      }
    }
    m_hops_left[op] = static_cast<std::uint32_t>(m_connections[found->second].hops.size());
    ++m_result.flows;
    enter({found->second, 0}, op);
  }

  void enter(Flow at_hop, std::uint32_t op) {
    std::deque<std::uint32_t>& writes = m_connections[at_hop.connection].hops[at_hop.hop];
    writes.push_back(op);
    if (writes.size() == 1) {
      begin(at_hop);
    }
  }

  void begin(Flow at_hop) {
    const Connection& connection = m_connections[at_hop.connection];
    const std::uint32_t op = connection.hops[at_hop.hop].front();
    const std::uint32_t flow = connection.first_flow + at_hop.hop;
    const SimGraph::Op& write = m_graph.ops[op];
    if (m_graph.paths[write.target].hops.empty() || write.amount <= 0) {
      at(m_engine.now(), Event::Kind::crossed, flow);
    } else {
      if (at_hop.hop == 0) {
        m_result.most_flows = std::max(m_result.most_flows, ++m_live);
      }
      m_engine.start_flow(flow, write.target, at_hop.hop, write.amount);
    }
    if (at_hop.hop + 1 < connection.hops.size()) {
      enter({at_hop.connection, at_hop.hop + 1}, op);
    }
  }

  void flow_ended(std::uint32_t flow) {
    const Flow at_hop = m_flows[flow];
    m_live -= m_hops_left[m_connections[at_hop.connection].hops[at_hop.hop].front()] == 1 ? 1U : 0U;
    crossed(flow);
  }

  void crossed(std::uint32_t flow) {
    const Flow at_hop = m_flows[flow];
    Connection& connection = m_connections[at_hop.connection];
    const std::uint32_t lane = connection.lane;
    std::deque<std::uint32_t>& writes = connection.hops[at_hop.hop];
    const std::uint32_t op = writes.front();
    writes.pop_front();
    if (--m_hops_left[op] == 0) {
      const SimGraph::Op& write = m_graph.ops[op];
      at(m_engine.now() + m_graph.paths[write.target].latency_s, Event::Kind::arrival,
         write.awaited);
    }
    if (!writes.empty()) {
      begin(at_hop);
    }
    if (at_hop.hop == 0) {
      complete(lane, op);
      compute_next(lane);
    }
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
  std::vector<std::uint32_t> m_missing;   ///< [op]: what it still waits for
  std::vector<std::uint32_t> m_hops_left; ///< [op]: of a write, that it has not crossed
  std::vector<std::size_t> m_successor_begin;
  std::vector<std::uint32_t> m_successors;
  std::vector<Lane> m_lanes;
  std::deque<Connection> m_connections;
  std::vector<Flow> m_flows; ///< by the number that the engine knows
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
