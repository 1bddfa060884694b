// SPDX-License-Identifier: Apache-2.0
#include "strategies/play.hpp"

#include "core/error.hpp"
#include "core/interrupt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <span>
#include <utility>

namespace reckon {
namespace {

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
  /// Of a piece of a write: when its first byte comes to the station.
  double head_s = 0;
  std::uint32_t from = 0; ///< a piece's connection, else the lane
  std::uint32_t op = 0;   ///< of the (sender's) lane
  std::uint32_t bytes = 0;
  std::uint16_t hop = 0; ///< station of the path that a piece comes to
  Kind kind = Kind::at_station;
  bool last = false; ///< piece of its write
};

/// Events in the order in which they are to happen, the oldest first.
class EventQueue {
public:
  [[nodiscard]] bool empty() const { return m_first == m_events.size(); }
  [[nodiscard]] const Event& front() const { return m_events[m_first]; }
  /// Whether an event created now would be the last of them.
  [[nodiscard]] bool goes_last(double seconds) const {
    return empty() || seconds >= m_events.back().seconds;
  }
  void push(const Event& event) { m_events.push_back(event); }
  void pop() {
    constexpr std::size_t k_worth_moving = 256;
    ++m_first;
    if (m_first == m_events.size()) {
      m_events.clear();
      m_first = 0;
    } else if (m_first >= k_worth_moving && 2 * m_first >= m_events.size()) {
      m_events.erase(m_events.begin(), m_events.begin() + static_cast<std::ptrdiff_t>(m_first));
      m_first = 0;
    }
  }

private:
  std::vector<Event> m_events;
  std::size_t m_first = 0; ///< those before it have happened
};

/// Who of many comes first. When one of them changes, only its games are played again.
class Tournament {
public:
  struct Key {
    std::uint64_t time = k_never; ///< not negative: as doubles their bits sort like their values
    std::uint64_t number = k_never;
    Key() = default;
    explicit Key(const Event& event)
        : time(std::bit_cast<std::uint64_t>(event.seconds)), number(event.number) {}
    /// Without branches, which no processor could foretell.
    [[nodiscard]] bool before(const Key& other) const {
      const unsigned earlier = time < other.time ? 1 : 0, same = time == other.time ? 1 : 0,
                     older = number < other.number ? 1 : 0;
      return (earlier | (same & older)) != 0;
    }
  };

  explicit Tournament(std::size_t players)
      : m_players(std::bit_ceil(std::max<std::size_t>(2, players))), m_keys(m_players),
        m_winner(2 * m_players, 0) {
    for (std::size_t p = 0; p < m_players; ++p) {
      m_winner[m_players + p] = static_cast<std::uint32_t>(p);
    }
    for (std::size_t game = m_players - 1; game > 0; --game) {
      m_winner[game] = m_winner[2 * game];
    }
  }

  [[nodiscard]] std::size_t first() const { return m_winner[1]; }
  [[nodiscard]] const Key& first_key() const { return m_keys[first()]; }
  [[nodiscard]] bool empty() const { return first_key().time == k_never; }
  void change(std::size_t player, const Key& key) {
    m_keys[player] = key;
    auto winner = static_cast<std::uint32_t>(player);
    Key least = key;
    for (std::size_t at = m_players + player; at > 1; at /= 2) {
      const std::uint32_t other = m_winner[at ^ 1U];
      const Key others = m_keys[other];
      const bool lost = others.before(least);
      winner = lost ? other : winner;
      least.time = lost ? others.time : least.time;
      least.number = lost ? others.number : least.number;
      if (winner != player && winner == m_winner[at / 2]) {
        return; // who lost has lost there before
      }
      m_winner[at / 2] = winner;
    }
  }

private:
  static constexpr std::uint64_t k_never = std::numeric_limits<std::uint64_t>::max();
  std::size_t m_players; ///< a power of two
  std::vector<Key> m_keys;
  std::vector<std::uint32_t> m_winner; ///< of each game, the final's in [1]; then the players
};

/// All events to come. What one source creates is nearly always in the order of time already, as
/// what leaves a station is: it waits in the source's own queue, and only the first of each queue
/// is held against the others. What happens at once does not wait at all.
class Agenda {
public:
  explicit Agenda(std::size_t sources) : m_of_source(sources), m_next(sources + 1) {}

  [[nodiscard]] bool empty() const { return m_at_once.empty() && m_next.empty(); }

  /// `source`: any below the number given, but the same for events whose times rarely go back.
  void push(std::size_t source, double now, Event event) {
    event.number = m_number++;
    if (event.seconds == now && m_at_once.goes_last(now)) {
      m_at_once.push(event);
      return;
    }
    EventQueue& queue = m_of_source[source];
    if (queue.goes_last(event.seconds)) {
      if (queue.empty()) {
        m_next.change(source, Tournament::Key(event));
      }
      queue.push(event);
    } else {
      m_others.push(event);
      m_next.change(m_of_source.size(), Tournament::Key(m_others.top()));
    }
  }

  [[nodiscard]] Event pop() {
    if (!m_at_once.empty() && Tournament::Key(m_at_once.front()).before(m_next.first_key())) {
      const Event event = m_at_once.front();
      m_at_once.pop();
      return event;
    }
    const std::size_t source = m_next.first();
    if (source == m_of_source.size()) {
      const Event event = m_others.top();
      m_others.pop();
      m_next.change(source, m_others.empty() ? Tournament::Key() : Tournament::Key(m_others.top()));
      return event;
    }
    EventQueue& queue = m_of_source[source];
    const Event event = queue.front();
    queue.pop();
    m_next.change(source, queue.empty() ? Tournament::Key() : Tournament::Key(queue.front()));
    return event;
  }

private:
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return Tournament::Key(b).before(Tournament::Key(a));
    }
  };
  EventQueue m_at_once;
  std::vector<EventQueue> m_of_source;
  std::priority_queue<Event, std::vector<Event>, Later> m_others; ///< out of their source's order
  Tournament m_next;                                              ///< of m_of_source, and m_others
  std::uint64_t m_number = 0;
};

using Ready = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;

constexpr std::uint32_t k_none = std::numeric_limits<std::uint32_t>::max();

/// What a play needs to know of an op again and again, close together.
struct Step {
  std::uint64_t bytes = 0;
  std::uint32_t missing = 0;         ///< dependencies that are not done; and of an await its write
  std::uint32_t successors = 0;      ///< Lane::successors from here to the next step's
  std::uint32_t connection = k_none; ///< write
  std::uint32_t await = k_none;      ///< write: the op at its peer that it ends
  OpKind kind = OpKind::write;
};

/// A lane of a rank: the same rules as the executor's.
struct Lane {
  const LaneProgram* program = nullptr;
  std::uint32_t rank = 0, number = 0;
  std::vector<Step> steps; ///< by op, and one more for the end of the last one's successors
  std::vector<std::uint32_t> successors;
  Ready local; ///< local ops that are ready
  std::size_t left = 0;
  bool busy = false;
  std::uint32_t running = 0;
  double done_seconds = 0;
};

/// The writes of one lane to the same lane of another rank.
struct Connection {
  std::uint32_t lane = 0, peer_lane = 0;
  std::span<const std::uint32_t> path;
  double latency_s = 0;
  std::vector<std::uint32_t> writes; ///< ops of `lane`; once connected, those posted, in that order
  std::size_t sent = 0;              ///< of those posted: wholly
  std::uint64_t sent_bytes = 0;      ///< of the next
  std::uint64_t queued_bytes = 0;    ///< in the first station's queue
};

struct PlayedStation {
  double free_s = 0; ///< when it has served all that is queued
  /// Sources of events: what leaves it as its path's first, and what it sends on.
  std::uint32_t first = k_none, on = k_none;
};

class Player {
public:
  Player(const Schedule& schedule, const PlayNetwork& network, const OpCost& cost,
         RankTimelines* timeline)
      : m_schedule(schedule), m_network(network), m_cost(cost), m_timeline(timeline),
        m_own_curves(!network.station_busy.empty()),
        m_stations(network.station_bytes_per_s.size()) {
    m_lane_count = schedule.ranks.empty() ? 0 : schedule.ranks.front().lanes.size();
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      for (std::size_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
        add_lane(schedule.ranks[r].lanes[l], r, l);
      }
    }
    connect();
    number_sources();
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
        if (m_lanes[lane].steps[op].missing == 0) {
          make_ready(lane, op);
        }
      }
      start_local(lane);
    }
    constexpr std::uint64_t k_between_polls = 1 << 16;
    for (std::uint64_t events = 0; !m_agenda.empty(); ++events) {
      if (events % k_between_polls == 0) {
        stop_if_interrupted();
      }
      const Event event = m_agenda.pop();
      m_now = event.seconds;
      handle(event);
    }
    PlayResult result;
    result.middle_half_seconds = m_middle_end_s - m_middle_begin_s;
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
    lane.steps.resize(count + 1);
    m_peers.assign(m_schedule.ranks.size(), k_none); // their connections
    for (std::uint32_t i = 0; i < count; ++i) {
      const Op& op = program.ops()[i];
      Step& step = lane.steps[i];
      step.kind = op.kind;
      step.bytes = op.bytes;
      for (const std::uint32_t d : program.dependencies(i)) {
        ++lane.steps[d + 1].successors;
        ++step.missing;
      }
      if (op.kind == OpKind::await) {
        ++step.missing;
      } else if (op.kind == OpKind::write) {
        if (m_peers[op.peer] == k_none) {
          m_peers[op.peer] = static_cast<std::uint32_t>(m_connections.size());
          Connection connection;
          connection.lane = static_cast<std::uint32_t>(m_lanes.size());
          connection.peer_lane = static_cast<std::uint32_t>(op.peer * m_lane_count + number);
          connection.path = m_network.path(number, rank, op.peer);
          connection.latency_s = m_network.latency_of(rank, op.peer);
          m_connections.push_back(std::move(connection));
        }
        ++m_writes;
        step.connection = m_peers[op.peer];
        m_connections[step.connection].writes.push_back(i);
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      lane.steps[i + 1].successors += lane.steps[i].successors;
    }
    lane.successors.resize(lane.steps.back().successors);
    std::vector<std::uint32_t> next(count);
    std::ranges::transform(lane.steps.begin(), lane.steps.end() - 1, next.begin(),
                           &Step::successors);
    for (std::uint32_t i = 0; i < count; ++i) {
      for (const std::uint32_t d : program.dependencies(i)) {
        lane.successors[next[d]++] = i;
      }
    }
    m_lanes.push_back(std::move(lane));
  }

  /// Finds for each write the await that it ends.
  void connect() {
    std::vector<std::vector<std::uint32_t>> into(m_lanes.size()); // connections
    for (std::uint32_t c = 0; c < m_connections.size(); ++c) {
      into[m_connections[c].peer_lane].push_back(c);
    }
    std::vector<std::vector<std::uint32_t>> awaits(m_schedule.ranks.size()); // by peer
    for (std::size_t l = 0; l < m_lanes.size(); ++l) {
      const std::span<const Op> ops = m_lanes[l].program->ops();
      for (std::uint32_t i = 0; i < ops.size(); ++i) {
        if (ops[i].kind == OpKind::await) {
          awaits[ops[i].peer].push_back(i);
        }
      }
      for (const std::uint32_t c : into[l]) {
        connect(m_connections[c], awaits[m_lanes[m_connections[c].lane].rank]);
      }
      for (std::vector<std::uint32_t>& of_peer : awaits) {
        of_peer.clear();
      }
    }
  }

  /// `awaits`: ops of the peer's lane. They are in the order of the writes nearly always.
  void connect(Connection& connection, std::vector<std::uint32_t>& awaits) {
    Lane &lane = m_lanes[connection.lane], &peer = m_lanes[connection.peer_lane];
    std::vector<std::uint32_t>& writes = connection.writes;
    const auto sent_tag = [&](std::uint32_t op) { return lane.program->ops()[op].tag; };
    const auto awaited_tag = [&](std::uint32_t op) { return peer.program->ops()[op].tag; };
    const auto fit = [&] { return std::ranges::equal(writes, awaits, {}, sent_tag, awaited_tag); };
    if (!fit()) {
      std::ranges::sort(writes, {}, sent_tag);
      std::ranges::sort(awaits, {}, awaited_tag);
      if (!fit()) {
        fail(ErrorKind::internal,
             fmt::format("play: lane {} of rank {} does not write what rank {} awaits of it",
                         lane.number, lane.rank, peer.rank));
      }
    }
    for (std::size_t i = 0; i < writes.size(); ++i) {
      lane.steps[writes[i]].await = awaits[i];
    }
    writes.clear();
  }

  /// Only of stations that are passed: there may be many more.
  void number_sources() {
    std::uint32_t count = 1 + k_of_lanes;
    const auto number = [&](std::uint32_t& source) {
      source = source == k_none ? count++ : source;
    };
    for (const Connection& connection : m_connections) {
      for (const std::uint32_t& station : connection.path) {
        number(m_stations[station].on);
        if (&station == &connection.path.front()) {
          number(m_stations[station].first);
        }
      }
    }
    m_agenda = Agenda(count);
  }

  void push(std::uint32_t source, const Event& event) { m_agenda.push(source, m_now, event); }

  void handle(const Event& event) {
    switch (event.kind) {
    case Event::Kind::at_station:
      serve(event);
      break;
    case Event::Kind::left_first: {
      Connection& connection = m_connections[event.from];
      connection.queued_bytes -= event.bytes;
      const std::uint32_t lane = connection.lane;
      if (event.last) {
        complete(lane, event.op);
      }
      send(event.from);
      start_local(lane);
      break;
    }
    case Event::Kind::arrived: {
      ++m_arrived;
      m_middle_begin_s = 4 * m_arrived <= m_writes ? m_now : m_middle_begin_s;
      m_middle_end_s = 4 * m_arrived <= 3 * m_writes ? m_now : m_middle_end_s;
      const Connection& connection = m_connections[event.from];
      const std::uint32_t lane = connection.peer_lane;
      const std::uint32_t await = m_lanes[connection.lane].steps[event.op].await;
      if (--m_lanes[lane].steps[await].missing == 0) {
        make_ready(lane, await);
      }
      start_local(lane);
      break;
    }
    case Event::Kind::delayed:
      complete(event.from, event.op);
      start_local(event.from);
      break;
    case Event::Kind::lane_free: {
      Lane& lane = m_lanes[event.from];
      lane.busy = false;
      complete(event.from, lane.running);
      start_local(event.from);
      break;
    }
    }
  }

  void complete(std::uint32_t lane_index, std::uint32_t op) {
    Lane& lane = m_lanes[lane_index];
    --lane.left;
    lane.done_seconds = m_now;
    record(lane, op, &OpSpan::end_ns);
    for (std::uint32_t i = lane.steps[op].successors; i < lane.steps[op + 1].successors; ++i) {
      const std::uint32_t successor = lane.successors[i];
      if (--lane.steps[successor].missing == 0) {
        make_ready(lane_index, successor);
      }
    }
  }

  void make_ready(std::uint32_t lane_index, std::uint32_t op_index) {
    Lane& lane = m_lanes[lane_index];
    const Step& step = lane.steps[op_index];
    record(lane, op_index, &OpSpan::begin_ns); // of a local op that waits for its lane: too early
    if (step.kind == OpKind::await) {
      complete(lane_index, op_index);
    } else if (step.kind == OpKind::write) {
      m_connections[step.connection].writes.push_back(op_index);
      send(step.connection);
    } else if (step.kind == OpKind::delay) {
      Event over;
      over.kind = Event::Kind::delayed;
      over.seconds = m_now + static_cast<double>(lane.program->ops()[op_index].duration_ns) * 1e-9;
      over.from = lane_index;
      over.op = op_index;
      push(k_of_lanes, over);
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
    Event free;
    free.kind = Event::Kind::lane_free;
    free.seconds = m_now + m_cost(lane.rank, lane.program->ops()[lane.running]);
    free.from = lane_index;
    push(k_of_lanes, free);
  }

  void record(const Lane& lane, std::uint32_t op, std::int64_t OpSpan::*what) {
    if (m_timeline != nullptr) {
      (*m_timeline)[lane.rank][lane.number][op].*what = std::llround(m_now * 1e9);
    }
  }

  [[nodiscard]] std::uint64_t bytes_of(const Connection& connection, std::uint32_t op) const {
    return m_lanes[connection.lane].steps[op].bytes;
  }

  /// Puts as much into the first station's queue as the connection may have there.
  void send(std::uint32_t index) {
    Connection& connection = m_connections[index];
    while (connection.sent < connection.writes.size() &&
           connection.queued_bytes < m_network.quantum_bytes) {
      const std::uint32_t op = connection.writes[connection.sent];
      const std::uint64_t bytes = bytes_of(connection, op) - connection.sent_bytes;
      const std::uint64_t room = m_network.quantum_bytes - connection.queued_bytes;
      if (room < std::min<std::uint64_t>(bytes, m_network.least_piece_bytes)) {
        return;
      }
      Event piece;
      piece.seconds = piece.head_s = m_now;
      piece.from = index;
      piece.op = op;
      piece.bytes = static_cast<std::uint32_t>(std::min(bytes, room));
      piece.last = piece.bytes == bytes;
      connection.sent_bytes = piece.last ? 0 : connection.sent_bytes + piece.bytes;
      connection.sent += piece.last ? 1 : 0;
      connection.queued_bytes += piece.bytes;
      push(k_of_lanes, piece);
    }
  }

  [[nodiscard]] double busy_seconds(std::uint32_t station, const Event& piece,
                                    const Connection& connection) const {
    return m_own_curves
               ? m_network.busy_seconds(station, piece.bytes,
                                        static_cast<double>(bytes_of(connection, piece.op)))
               : piece.bytes / m_network.station_bytes_per_s[station];
  }

  void serve(Event piece) {
    const Connection& connection = m_connections[piece.from];
    const std::span<const std::uint32_t> path = connection.path;
    Event next = piece;
    if (path.empty()) { // shared memory: no link to wait for
      next.kind = Event::Kind::left_first;
      push(k_of_lanes, next);
      if (piece.last) {
        next.kind = Event::Kind::arrived;
        next.seconds = m_now + connection.latency_s;
        push(k_of_lanes, next);
      }
      return;
    }
    PlayedStation& station = m_stations[path[piece.hop]];
    const double head = std::max(piece.head_s, station.free_s);
    const double end = std::max(m_now, station.free_s) +
                       busy_seconds(path[piece.hop], piece, connection) +
                       (piece.hop == 0 && piece.last ? m_network.write_overhead_s : 0);
    station.free_s = end;
    if (piece.hop == 0) {
      next.kind = Event::Kind::left_first;
      next.seconds = end;
      push(station.first, next);
    }
    if (piece.hop + 1U < path.size()) {
      // The head of the piece comes on while its tail is still here; a faster station takes it no
      // sooner than lets it end after the slower one.
      const double later = piece.hop == 0 ? connection.latency_s : 0;
      const double next_time = busy_seconds(path[piece.hop + 1U], piece, connection);
      next.kind = Event::Kind::at_station;
      ++next.hop;
      next.head_s = head + later;
      next.seconds = std::max(head, end - next_time) + later;
      push(station.on, next);
    } else if (piece.last) {
      next.kind = Event::Kind::arrived;
      next.seconds = end + (path.size() == 1 ? connection.latency_s : 0);
      push(station.on, next);
    }
  }

  const Schedule& m_schedule;
  const PlayNetwork& m_network;
  const OpCost& m_cost;
  RankTimelines* m_timeline; ///< null: nobody asks
  bool m_own_curves;         ///< of some stations
  std::size_t m_lane_count = 0;
  static constexpr std::uint32_t k_of_lanes = 0; ///< source of all events but stations'
  std::vector<PlayedStation> m_stations;
  std::vector<Lane> m_lanes;
  std::vector<Connection> m_connections;
  std::vector<std::uint32_t> m_peers; ///< of the lane that is being added
  Agenda m_agenda{0};
  double m_now = 0;
  std::uint64_t m_writes = 0, m_arrived = 0;
  double m_middle_begin_s = 0, m_middle_end_s = 0;
};

} // namespace

PlayResult play(const Schedule& schedule, const PlayNetwork& network, const OpCost& cost,
                RankTimelines* timeline) {
  return Player(schedule, network, cost, timeline).run();
}

} // namespace reckon
