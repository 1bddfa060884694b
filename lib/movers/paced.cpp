// SPDX-License-Identifier: Apache-2.0
#include "movers/paced.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "movers/handle.hpp"
#include "movers/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cmath>
#include <limits>
#include <sys/prctl.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_most_writes = 1024; ///< of a lane, posted and not completed
constexpr std::uint32_t k_notices = 1024;   ///< of a sender's lane to a receiver's
constexpr std::int64_t k_never = std::numeric_limits<std::int64_t>::max();
/// Pieces that are to join a queue within this time join it now: a sleep for each would only spin.
constexpr std::int64_t k_ahead_ns = 100'000;

using SharedTime = std::atomic<std::int64_t>;
static_assert(SharedTime::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);

/// When what arrives as `tag` is due.
struct Notice {
  std::int64_t due_ns = 0;
  std::uint32_t tag = 0;
};

/// From one lane of a rank to the same lane of another. The sender fills in a notice, then stores
/// `put` (release), and only then gives the write to the transport, so that whoever sees the
/// arrival sees the notice (acquire). The receiver copies notices, then stores `taken`.
struct NoticeRing {
  alignas(64) std::atomic<std::uint32_t> put;
  alignas(64) std::atomic<std::uint32_t> taken;
  std::array<Notice, k_notices> notices;
};

struct SharedHeader {
  std::atomic<std::uint64_t> writes, late;
  SharedTime worst_late_ns;
};

/// The memory that the ranks share: all zero is every station free and every ring empty.
class Shared {
public:
  Shared() = default;
  Shared(std::span<std::byte> memory, std::size_t stations, std::size_t ranks)
      : m_memory(memory.data()), m_stations(stations), m_ranks(ranks) {}
  [[nodiscard]] static std::size_t bytes(std::size_t stations, std::size_t ranks,
                                         std::size_t lanes) {
    return rings_at(stations) + ranks * ranks * lanes * sizeof(NoticeRing);
  }
  [[nodiscard]] SharedHeader& header() const { return *reinterpret_cast<SharedHeader*>(m_memory); }
  [[nodiscard]] SharedTime& free_ns(std::size_t station) const {
    return reinterpret_cast<SharedTime*>(m_memory + k_stations_at)[station];
  }
  [[nodiscard]] NoticeRing& ring(std::size_t from, std::size_t to, std::size_t lane) const {
    return reinterpret_cast<NoticeRing*>(
        m_memory + rings_at(m_stations))[(lane * m_ranks + from) * m_ranks + to];
  }

private:
  static constexpr std::size_t k_stations_at = 64;
  static_assert(sizeof(SharedHeader) <= k_stations_at);
  [[nodiscard]] static std::size_t rings_at(std::size_t stations) {
    return (k_stations_at + stations * sizeof(SharedTime) + 4095) / 4096 * 4096;
  }
  std::byte* m_memory = nullptr;
  std::size_t m_stations = 0, m_ranks = 0;
};

std::int64_t to_ns(double seconds) {
  return std::llround(seconds * 1e9);
}

class PacedLane final : public MoverLane {
public:
  PacedLane(MoverLane& inner, std::size_t number, std::size_t self, const StationNetwork& network,
            const Clock& clock)
      : m_inner(inner), m_number(number), m_self(self), m_network(network), m_clock(clock),
        m_writes(k_most_writes), m_connections(network.paths.size()) {
    for (std::size_t i = k_most_writes; i > 0; --i) {
      m_free.push_back(static_cast<std::uint32_t>(i - 1));
    }
    // The data path never allocates.
    m_moving.reserve(k_most_writes);
    m_sent.reserve(k_most_writes);
    m_arrived.reserve(k_most_writes);
    m_known.reserve(k_notices * network.paths.size());
  }

  void connect(const Shared& shared) { m_shared = shared; }

  bool write(int peer, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    if (peer < 0 || static_cast<std::size_t>(peer) >= m_connections.size() ||
        static_cast<std::size_t>(peer) == m_self) {
      m_error = "write(paced): no such peer";
      m_failed.push_back(id);
      return true;
    }
    if (m_free.empty()) {
      return false;
    }
    const std::uint32_t number = m_free.back();
    m_free.pop_back();
    m_writes[number] = {source, destination, bytes, id, tag, peer, bytes, 0, 0, k_none, false};
    Connection& connection = m_connections[static_cast<std::size_t>(peer)];
    if (connection.last == k_none) {
      connection.first = number;
      connection.next_ns = std::max(connection.next_ns, now_ns());
    } else {
      m_writes[connection.last].behind = number;
    }
    connection.last = number;
    advance();
    return true;
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    std::array<Completion, 16> completions;
    std::size_t count = 0;
    // A full heap is a receiver that does not poll enough: what is due goes first.
    const bool room = m_arrived.size() + completions.size() <= m_arrived.capacity();
    const std::size_t inner = room ? m_inner.poll(completions) : 0;
    for (std::size_t i = 0; i < inner; ++i) {
      const Completion& c = completions[i];
      if (c.kind == Completion::Kind::arrived) {
        push(m_arrived, {due_of(c.tag), c.tag});
      } else if (c.kind == Completion::Kind::sent) {
        push(m_sent, {m_writes[c.id].sent_ns, static_cast<std::uint32_t>(c.id)});
      } else if (c.kind == Completion::Kind::failed && c.id < k_most_writes) {
        m_failed.push_back(m_writes[c.id].id);
      } else {
        m_passed.push_back(c); // of the engine, or of a write that was refused at once
      }
    }
    advance();
    const std::int64_t now = now_ns();
    for (; count < out.size() && !m_failed.empty(); m_failed.pop_back()) {
      out[count++] = {Completion::Kind::failed, 0, m_failed.back()};
    }
    for (; count < out.size() && !m_passed.empty(); m_passed.pop_back()) {
      out[count++] = m_passed.back();
    }
    for (; count < out.size() && !m_sent.empty() && m_sent.front().ns <= now; pop(m_sent)) {
      const std::uint32_t number = m_sent.front().number;
      out[count++] = {Completion::Kind::sent, 0, m_writes[number].id};
      m_free.push_back(number);
    }
    for (; count < out.size() && !m_arrived.empty() && m_arrived.front().ns <= now;
         pop(m_arrived)) {
      out[count++] = {Completion::Kind::arrived, m_arrived.front().number, 0};
    }
    return count;
  }

  void wait(std::chrono::nanoseconds limit) noexcept override {
    if (!m_failed.empty() || !m_passed.empty()) {
      return;
    }
    if (!m_short_naps) {
      // The kernel may end a sleep late by this much; its usual 50 us would be a large part of what
      // is emulated.
      static_cast<void>(::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0));
      m_short_naps = true;
    }
    std::int64_t next = k_never;
    for (const Connection& connection : m_connections) {
      next = connection.last == k_none ? next : std::min(next, connection.next_ns);
    }
    next = m_sent.empty() ? next : std::min(next, m_sent.front().ns);
    next = m_arrived.empty() ? next : std::min(next, m_arrived.front().ns);
    const std::int64_t now = now_ns();
    if (!m_moving.empty()) {
      constexpr std::int64_t k_again = 100'000; // the transport had no room
      next = std::min(next, now + k_again);
    }
    const std::chrono::nanoseconds left(next == k_never ? limit.count() : next - now);
    if (left.count() > 0) {
      m_inner.wait(std::min(limit, left));
    }
  }

  std::string error() const override { return m_error.empty() ? m_inner.error() : m_error; }
  Engine& engine() noexcept override { return m_inner.engine(); }

private:
  static constexpr std::uint32_t k_none = UINT32_MAX;

  struct Write {
    Slice source, destination;
    std::uint64_t bytes = 0, id = 0;
    std::uint32_t tag = 0;
    int peer = 0;
    std::uint64_t left = 0; ///< bytes whose time is not known yet
    std::int64_t due_ns = 0, sent_ns = 0;
    std::uint32_t behind = k_none; ///< the next write to the same peer
    bool announced = false;        ///< the receiver has its notice
  };
  /// The writes to one peer, in the order posted, whose times are not known yet.
  struct Connection {
    std::uint32_t first = k_none, last = k_none;
    std::int64_t next_ns = 0; ///< when the next piece joins the first station's queue
  };
  struct Event {
    std::int64_t ns = 0;
    std::uint32_t number = 0; ///< of the write; of an arrival: its tag
    bool operator>(const Event& other) const { return ns > other.ns; }
  };
  using Heap = std::vector<Event>;
  static void push(Heap& heap, Event event) {
    heap.push_back(event);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  }
  static void pop(Heap& heap) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
  }

  [[nodiscard]] std::int64_t now_ns() const noexcept { return to_ns(m_clock.now().count()); }

  /// Gives pieces their times, earliest first, and writes whose times are known to the transport.
  void advance() noexcept {
    const std::int64_t until = now_ns() + k_ahead_ns;
    for (;;) {
      Connection* next = nullptr;
      for (Connection& connection : m_connections) {
        if (connection.last != k_none && connection.next_ns <= until &&
            (next == nullptr || connection.next_ns < next->next_ns)) {
          next = &connection;
        }
      }
      if (next == nullptr) {
        break;
      }
      take_piece(*next);
    }
    std::size_t kept = 0;
    for (const std::uint32_t number : m_moving) {
      if (kept > 0 || !move(number)) { // in order
        m_moving[kept++] = number;
      }
    }
    m_moving.resize(kept);
  }

  /// One piece through all its stations, as play() has it.
  void take_piece(Connection& connection) noexcept {
    Write& write = m_writes[connection.first];
    const auto to = static_cast<std::size_t>(write.peer);
    const std::uint64_t bytes = std::min(write.left, m_network.quantum_bytes);
    const std::int64_t latency = to_ns(m_network.latency_of(m_self, to));
    const std::vector<std::uint32_t>& path = m_network.path(m_number, m_self, to);
    std::int64_t head = connection.next_ns, tail = connection.next_ns;
    write.sent_ns = tail;
    for (std::size_t hop = 0; hop < path.size(); ++hop) {
      const std::int64_t busy = to_ns(m_network.busy_seconds(path[hop], static_cast<double>(bytes),
                                                             static_cast<double>(write.bytes)));
      // A station that is faster than the one before takes it no sooner than lets it end after it.
      const std::int64_t here = hop == 0 ? head : std::max(head, tail - busy);
      SharedTime& free = m_shared.free_ns(path[hop]);
      std::int64_t before = free.load(std::memory_order_relaxed);
      do {
        tail = std::max(here, before) + busy;
      } while (!free.compare_exchange_weak(before, tail, std::memory_order_relaxed));
      head = std::max(head, before);
      if (hop == 0) {
        connection.next_ns = write.sent_ns = tail;
        head += latency;
        tail += latency;
      }
    }
    write.due_ns = path.empty() ? tail + latency : tail;
    write.left -= bytes;
    if (write.left == 0) {
      m_moving.push_back(connection.first);
      connection.first = write.behind;
      connection.last = connection.first == k_none ? k_none : connection.last;
    }
  }

  /// The notice first, then the write. False: no room for one of them.
  bool move(std::uint32_t number) noexcept {
    Write& write = m_writes[number];
    if (!write.announced) {
      NoticeRing& ring = m_shared.ring(m_self, static_cast<std::size_t>(write.peer), m_number);
      const std::uint32_t put = ring.put.load(std::memory_order_relaxed);
      if (put - ring.taken.load(std::memory_order_acquire) == k_notices) {
        return false;
      }
      ring.notices[put % k_notices] = {write.due_ns, write.tag};
      ring.put.store(put + 1, std::memory_order_release);
      write.announced = true;
    }
    return m_inner.write(write.peer, write.source, write.destination, write.bytes, write.tag,
                         number);
  }

  /// When what has just arrived as `tag` is due.
  std::int64_t due_of(std::uint32_t tag) noexcept {
    for (std::size_t from = 0; from < m_connections.size(); ++from) {
      if (from == m_self) {
        continue;
      }
      NoticeRing& ring = m_shared.ring(from, m_self, m_number);
      const std::uint32_t put = ring.put.load(std::memory_order_acquire);
      std::uint32_t taken = ring.taken.load(std::memory_order_relaxed);
      for (; taken != put; ++taken) {
        m_known.push_back(ring.notices[taken % k_notices]);
      }
      ring.taken.store(taken, std::memory_order_release);
    }
    const auto known = std::find_if(m_known.begin(), m_known.end(),
                                    [tag](const Notice& notice) { return notice.tag == tag; });
    const std::int64_t now = now_ns();
    if (known == m_known.end()) {
      return now;
    }
    const std::int64_t due = known->due_ns;
    m_known.erase(known);
    SharedHeader& header = m_shared.header();
    header.writes.fetch_add(1, std::memory_order_relaxed);
    if (now > due) {
      header.late.fetch_add(1, std::memory_order_relaxed);
      std::int64_t worst = header.worst_late_ns.load(std::memory_order_relaxed);
      while (now - due > worst && !header.worst_late_ns.compare_exchange_weak(
                                      worst, now - due, std::memory_order_relaxed)) {
      }
    }
    return due;
  }

  MoverLane& m_inner;
  std::size_t m_number, m_self;
  const StationNetwork& m_network;
  const Clock& m_clock;
  Shared m_shared;
  std::vector<Write> m_writes;
  std::vector<std::uint32_t> m_free; ///< places in m_writes
  std::vector<Connection> m_connections;
  std::vector<std::uint32_t> m_moving; ///< times known, not given to the transport yet
  Heap m_sent, m_arrived;
  /// Of writes that have not arrived. A ring's worth of each sender at most: who has more under way
  /// is refused by the transport.
  std::vector<Notice> m_known;
  std::vector<std::uint64_t> m_failed;
  std::vector<Completion> m_passed;
  std::string m_error;
  bool m_short_naps = false;
};

class PacedMover final : public Mover {
public:
  PacedMover(std::unique_ptr<Mover> inner, int self, StationNetwork network, PacingRecord* record,
             const Clock& clock)
      : m_inner(std::move(inner)), m_self(self), m_network(std::move(network)), m_record(record),
        m_clock(clock), m_capabilities(m_inner->capabilities()) {
    m_capabilities.max_in_flight = std::min(m_capabilities.max_in_flight, k_most_writes);
    m_capabilities.crosses_machines = false;
  }

  ~PacedMover() override {
    if (m_record != nullptr && m_mapped) {
      const SharedHeader& header = m_shared.header();
      *m_record = {header.writes.load(std::memory_order_relaxed),
                   header.late.load(std::memory_order_relaxed),
                   1e-9 *
                       static_cast<double>(header.worst_late_ns.load(std::memory_order_relaxed))};
    }
  }

  const MoverCapabilities& capabilities() const noexcept override { return m_capabilities; }
  std::span<std::byte> allocate(std::uint64_t bytes) override { return m_inner->allocate(bytes); }
  std::span<std::byte> view(std::span<std::byte> buffer) override { return m_inner->view(buffer); }
  void push(std::span<std::byte> buffer) override { m_inner->push(buffer); }
  void abandon() noexcept override { m_inner->abandon(); }
  void pull(std::span<std::byte> buffer) override { m_inner->pull(buffer); }

  void open(int lanes) override {
    m_inner->open(lanes);
    m_bytes = Shared::bytes(m_network.station_bytes_per_s.size(), m_network.paths.size(),
                            static_cast<std::size_t>(lanes));
    if (m_self == 0) {
      m_fd = make_shared_memory("reckon-stations", m_bytes);
    }
    m_lane_count = lanes;
  }

  std::string address() const override {
    return Json{{"boot", boot_id()},
                {"pid", ::getpid()},
                {"stations", m_fd.get()},
                {"bytes", m_bytes},
                {"inner", m_inner->address()}}
        .dump();
  }

  void connect(int self, const std::vector<std::string>& addresses) override {
    if (addresses.size() != m_network.paths.size() || self != m_self) {
      fail(ErrorKind::internal,
           fmt::format("connect(paced): rank {} of {}; the stations are of {} "
                       "ranks, and this is rank {}",
                       self, addresses.size(), m_network.paths.size(), m_self));
    }
    std::vector<std::string> inner;
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      const std::string who = fmt::format("address of rank {}", rank);
      const Json json = parse_json(addresses[rank], who);
      const JsonView view(json, who);
      view.only({"boot", "pid", "stations", "bytes", "inner"});
      if (view.at("boot").string() != boot_id()) {
        fail(ErrorKind::unavailable,
             fmt::format("connect(paced): rank {} runs on another machine; links are emulated "
                         "between the ranks of one machine only: start all of them here",
                         rank));
      }
      if (view.at("bytes").count() != m_bytes) {
        fail(ErrorKind::operation,
             fmt::format("connect(paced): rank {} emulates another network than this rank; give "
                         "all ranks the same profile and as many lanes",
                         rank));
      }
      if (rank == 0) {
        m_mapping = map_of_peer("paced", 0, view.at("pid").integer(1, INT_MAX),
                                view.at("stations").integer(0, INT_MAX), m_bytes, false);
        m_mapped = true;
      }
      inner.push_back(view.at("inner").string());
    }
    m_shared = Shared(m_mapping.bytes(), m_network.station_bytes_per_s.size(), addresses.size());
    m_inner->set_meanwhile([this] { meanwhile(); });
    m_inner->connect(self, inner);
    for (int lane = 0; lane < m_lane_count; ++lane) { // some movers have lanes only now
      m_lanes.push_back(
          std::make_unique<PacedLane>(m_inner->lane(lane), static_cast<std::size_t>(lane),
                                      static_cast<std::size_t>(m_self), m_network, m_clock));
      m_lanes.back()->connect(m_shared);
    }
  }

  MoverLane& lane(int index) override { return *m_lanes.at(static_cast<std::size_t>(index)); }

private:
  std::unique_ptr<Mover> m_inner;
  int m_self;
  StationNetwork m_network;
  PacingRecord* m_record;
  const Clock& m_clock;
  MoverCapabilities m_capabilities;
  std::size_t m_bytes = 0;
  int m_lane_count = 0;
  Fd m_fd; ///< of rank 0
  Mapping m_mapping;
  bool m_mapped = false;
  Shared m_shared;
  std::vector<std::unique_ptr<PacedLane>> m_lanes;
};

} // namespace

std::unique_ptr<Mover> make_paced_mover(std::unique_ptr<Mover> inner, int self,
                                        StationNetwork network, PacingRecord* record,
                                        const Clock& clock) {
  return std::make_unique<PacedMover>(std::move(inner), self, std::move(network), record, clock);
}

} // namespace reckon
