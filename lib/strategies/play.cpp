// SPDX-License-Identifier: Apache-2.0
#include "strategies/play.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

namespace reckon {
namespace {

/// One piece of a write on its way.
struct Piece {
  std::uint32_t connection = 0;
  std::uint32_t op = 0; ///< of the sender's lane
  std::uint32_t bytes = 0;
  std::uint32_t hop = 0; ///< station of the path that it comes to
  bool last = false;     ///< of its write
  double head_s = 0;     ///< when its first byte comes to that station
};

struct Event {
  enum class Kind : std::uint8_t {
    at_station, ///< a piece joins a station's queue
    left_first, ///< a piece has left the first station: the connection may send more
    arrived,    ///< the last piece of a write is there
    lane_free,  ///< a lane's local op is done
    delayed,    ///< a delay is over
  };
  double seconds = 0;
  std::uint64_t number = 0; ///< breaks ties in the order of creation
  Kind kind = Kind::at_station;
  std::uint32_t lane = 0; ///< lane_free: index of the lane
  Piece piece;
  bool operator>(const Event& other) const {
    return std::tie(seconds, number) > std::tie(other.seconds, other.number);
  }
};

using Heap = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;

/// A lane of a rank: the same rules as the executor's.
struct Lane {
  const LaneProgram* program = nullptr;
  std::uint32_t rank = 0, number = 0;
  std::vector<std::uint32_t> successor_begin, successors, missing;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> await_of; ///< (tag, op), sorted
  Heap local;                                                    ///< local ops that are ready
  std::size_t left = 0;
  bool busy = false;
  std::uint32_t running = 0;
  double done_seconds = 0;
};

/// The writes of one lane to the same lane of another rank, in the order posted.
struct Connection {
  std::uint32_t lane = 0, peer_lane = 0;
  const std::vector<std::uint32_t>* path = nullptr;
  std::deque<std::pair<std::uint32_t, std::uint64_t>> posted; ///< (op, bytes not sent yet)
  std::uint64_t queued_bytes = 0;                             ///< in the first station's queue
};

class Player {
public:
  Player(const Schedule& schedule, const PlayNetwork& network, const OpCost& cost,
         RankTimelines* timeline)
      : m_schedule(schedule), m_network(network), m_cost(cost), m_timeline(timeline),
        m_free(network.station_bytes_per_s.size(), 0) {
    m_lane_count = schedule.ranks.empty() ? 0 : schedule.ranks.front().lanes.size();
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      for (std::size_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
        add_lane(schedule.ranks[r].lanes[l], r, l);
      }
    }
    m_connection_of.resize(m_lanes.size());
    if (m_timeline != nullptr) {
      m_timeline->assign(schedule.ranks.size(), {});
      for (const Lane& lane : m_lanes) {
        (*m_timeline)[lane.rank].emplace_back(lane.program->ops().size());
      }
    }
  }

  PlayResult run() {
    for (std::uint32_t lane = 0; lane < m_lanes.size(); ++lane) {
      const std::size_t count = m_lanes[lane].program->ops().size();
      for (std::uint32_t op = 0; op < count; ++op) {
        if (m_lanes[lane].missing[op] == 0) {
          make_ready(lane, op);
        }
      }
      start_local(lane);
    }
    while (!m_events.empty()) {
      const Event event = m_events.top();
      m_events.pop();
      m_now = event.seconds;
      handle(event);
    }
    PlayResult result;
    result.rank_seconds.assign(m_schedule.ranks.size(), 0);
    for (const Lane& lane : m_lanes) {
      if (lane.left > 0) {
        fail(ErrorKind::internal, fmt::format("play: rank {} lane {} came to a halt with {} ops "
                                              "left",
                                              lane.rank, lane.number, lane.left));
      }
      result.rank_seconds[lane.rank] = std::max(result.rank_seconds[lane.rank], lane.done_seconds);
      result.total_seconds = std::max(result.total_seconds, lane.done_seconds);
    }
    return result;
  }

private:
  void add_lane(const LaneProgram& program, std::size_t rank, std::size_t number) {
    Lane lane;
    lane.program = &program;
    lane.rank = static_cast<std::uint32_t>(rank);
    lane.number = static_cast<std::uint32_t>(number);
    const std::size_t count = program.ops().size();
    lane.left = count;
    lane.successor_begin.assign(count + 1, 0);
    lane.missing.assign(count, 0);
    for (std::size_t i = 0; i < count; ++i) {
      for (const std::uint32_t d : program.dependencies(i)) {
        ++lane.successor_begin[d + 1];
        ++lane.missing[i];
      }
      const Op& op = program.ops()[i];
      if (op.kind == OpKind::await) {
        ++lane.missing[i];
        lane.await_of.emplace_back(op.tag, static_cast<std::uint32_t>(i));
      }
    }
    std::sort(lane.await_of.begin(), lane.await_of.end());
    for (std::size_t i = 0; i < count; ++i) {
      lane.successor_begin[i + 1] += lane.successor_begin[i];
    }
    lane.successors.resize(lane.successor_begin.back());
    std::vector<std::uint32_t> next = lane.successor_begin;
    for (std::size_t i = 0; i < count; ++i) {
      for (const std::uint32_t d : program.dependencies(i)) {
        lane.successors[next[d]++] = static_cast<std::uint32_t>(i);
      }
    }
    m_lanes.push_back(std::move(lane));
  }

  void push(double seconds, Event::Kind kind, std::uint32_t lane, const Piece& piece) {
    m_events.push({seconds, m_number++, kind, lane, piece});
  }

  void handle(const Event& event) {
    switch (event.kind) {
    case Event::Kind::at_station:
      serve(event.piece);
      break;
    case Event::Kind::left_first: {
      Connection& connection = m_connections[event.piece.connection];
      connection.queued_bytes -= event.piece.bytes;
      const std::uint32_t lane = connection.lane;
      if (event.piece.last) {
        complete(lane, event.piece.op);
      }
      send(event.piece.connection);
      start_local(lane);
      break;
    }
    case Event::Kind::arrived: {
      const Connection& connection = m_connections[event.piece.connection];
      const Op& op = m_lanes[connection.lane].program->ops()[event.piece.op];
      Lane& peer = m_lanes[connection.peer_lane];
      const std::uint32_t lane = connection.peer_lane;
      const auto at = std::lower_bound(peer.await_of.begin(), peer.await_of.end(),
                                       std::pair<std::uint32_t, std::uint32_t>(op.tag, 0));
      const std::uint32_t await = at->second;
      if (--peer.missing[await] == 0) {
        make_ready(lane, await);
      }
      start_local(lane);
      break;
    }
    case Event::Kind::delayed:
      complete(event.lane, event.piece.op);
      start_local(event.lane);
      break;
    case Event::Kind::lane_free: {
      Lane& lane = m_lanes[event.lane];
      lane.busy = false;
      complete(event.lane, lane.running);
      start_local(event.lane);
      break;
    }
    }
  }

  void complete(std::uint32_t lane_index, std::uint32_t op) {
    Lane& lane = m_lanes[lane_index];
    --lane.left;
    lane.done_seconds = m_now;
    record(lane, op, &OpSpan::end_ns);
    for (std::uint32_t i = lane.successor_begin[op]; i < lane.successor_begin[op + 1]; ++i) {
      const std::uint32_t successor = lane.successors[i];
      if (--lane.missing[successor] == 0) {
        make_ready(lane_index, successor);
      }
    }
  }

  void make_ready(std::uint32_t lane_index, std::uint32_t op_index) {
    Lane& lane = m_lanes[lane_index];
    const Op& op = lane.program->ops()[op_index];
    record(lane, op_index, &OpSpan::begin_ns); // of a local op that waits for its lane: too early
    if (op.kind == OpKind::await) {
      complete(lane_index, op_index);
    } else if (op.kind == OpKind::write) {
      const std::uint32_t connection = connection_to(lane_index, op.peer);
      m_connections[connection].posted.emplace_back(op_index, op.bytes);
      send(connection);
    } else if (op.kind == OpKind::delay) {
      Piece piece;
      piece.op = op_index;
      push(m_now + static_cast<double>(op.duration_ns) * 1e-9, Event::Kind::delayed, lane_index,
           piece);
    } else {
      lane.local.push(op_index);
    }
  }

  void start_local(std::uint32_t lane_index) {
    Lane& lane = m_lanes[lane_index];
    if (lane.busy || lane.local.empty()) {
      return;
    }
    lane.busy = true;
    lane.running = lane.local.top();
    lane.local.pop();
    record(lane, lane.running, &OpSpan::begin_ns);
    push(m_now + m_cost(lane.rank, lane.program->ops()[lane.running]), Event::Kind::lane_free,
         lane_index, {});
  }

  void record(const Lane& lane, std::uint32_t op, std::int64_t OpSpan::*what) {
    if (m_timeline != nullptr) {
      (*m_timeline)[lane.rank][lane.number][op].*what = std::llround(m_now * 1e9);
    }
  }

  std::uint32_t connection_to(std::uint32_t lane_index, std::uint32_t peer) {
    const auto [at, added] =
        m_connection_of[lane_index].emplace(peer, static_cast<std::uint32_t>(m_connections.size()));
    if (added) {
      const Lane& lane = m_lanes[lane_index];
      Connection connection;
      connection.lane = lane_index;
      connection.peer_lane = static_cast<std::uint32_t>(peer * m_lane_count + lane.number);
      connection.path = &m_network.path(lane.number, lane.rank, peer);
      m_connections.push_back(std::move(connection));
    }
    return at->second;
  }

  /// Puts as much into the first station's queue as the connection may have there.
  void send(std::uint32_t index) {
    Connection& connection = m_connections[index];
    while (!connection.posted.empty() && connection.queued_bytes < m_network.quantum_bytes) {
      auto& [op, bytes] = connection.posted.front();
      const std::uint64_t room = m_network.quantum_bytes - connection.queued_bytes;
      if (room < std::min<std::uint64_t>(bytes, m_network.least_piece_bytes)) {
        return;
      }
      Piece piece;
      piece.connection = index;
      piece.op = op;
      piece.bytes = static_cast<std::uint32_t>(std::min(bytes, room));
      bytes -= piece.bytes;
      piece.last = bytes == 0;
      if (piece.last) {
        connection.posted.pop_front();
      }
      connection.queued_bytes += piece.bytes;
      piece.head_s = m_now;
      push(m_now, Event::Kind::at_station, 0, piece);
    }
  }

  void serve(Piece piece) {
    const Connection& connection = m_connections[piece.connection];
    const std::vector<std::uint32_t>& path = *connection.path;
    const Lane& lane = m_lanes[connection.lane];
    const Op& op = lane.program->ops()[piece.op];
    const double latency = m_network.latency_of(lane.rank, op.peer);
    if (path.empty()) { // shared memory: no link to wait for
      push(m_now, Event::Kind::left_first, 0, piece);
      if (piece.last) {
        push(m_now + latency, Event::Kind::arrived, 0, piece);
      }
      return;
    }
    const auto busy = [&](std::uint32_t station) {
      return m_network.busy_seconds(station, piece.bytes, static_cast<double>(op.bytes));
    };
    const std::uint32_t station = path[piece.hop];
    const double head = std::max(piece.head_s, m_free[station]);
    const double end = std::max(m_now, m_free[station]) + busy(station) +
                       (piece.hop == 0 && piece.last ? m_network.write_overhead_s : 0);
    m_free[station] = end;
    if (piece.hop == 0) {
      push(end, Event::Kind::left_first, 0, piece);
    }
    if (piece.hop + 1 < path.size()) {
      // The head of the piece comes on while its tail is still here; a faster station takes it no
      // sooner than lets it end after the slower one.
      const double later = piece.hop == 0 ? latency : 0;
      const double next_time = busy(path[piece.hop + 1]);
      ++piece.hop;
      piece.head_s = head + later;
      push(std::max(head, end - next_time) + later, Event::Kind::at_station, 0, piece);
    } else if (piece.last) {
      push(end + (path.size() == 1 ? latency : 0), Event::Kind::arrived, 0, piece);
    }
  }

  const Schedule& m_schedule;
  const PlayNetwork& m_network;
  const OpCost& m_cost;
  RankTimelines* m_timeline; ///< null: nobody asks
  std::size_t m_lane_count = 0;
  std::vector<double> m_free; ///< by station: when it has served all that is queued
  std::vector<Lane> m_lanes;
  std::vector<Connection> m_connections;
  std::vector<std::map<std::uint32_t, std::uint32_t>> m_connection_of; ///< [lane]: peer -> index
  std::priority_queue<Event, std::vector<Event>, std::greater<>> m_events;
  std::uint64_t m_number = 0;
  double m_now = 0;
};

} // namespace

PlayResult play(const Schedule& schedule, const PlayNetwork& network, const OpCost& cost,
                RankTimelines* timeline) {
  return Player(schedule, network, cost, timeline).run();
}

} // namespace reckon
