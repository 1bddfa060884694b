// SPDX-License-Identifier: Apache-2.0
#include "movers/host.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "movers/handle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace reckon {
namespace {

constexpr std::uint32_t k_ring_entries =
    1024; // a power of two: positions are counted without wrapping
constexpr int k_max_ranks = 256;
constexpr int k_max_lanes = 64;
constexpr std::size_t k_line = 128; // two cache lines: the hardware prefetches them in pairs

using SharedWord = std::atomic<std::uint32_t>;
static_assert(SharedWord::is_always_lock_free && sizeof(SharedWord) == sizeof(std::uint32_t),
              "words in shared memory must be plain words, also to the kernel's futex");

/// Tags on their way from one lane of one rank to the same lane of another. It lies in the
/// receiver's memory.
///
/// Orders. The sender fills tags[] (and the payload), then stores `tail`; the receiver's load of
/// `tail` sees both. The receiver reads tags[], then stores `head`; the sender's load of `head`
/// makes the entry its own again. These are release/acquire pairs; the stores and the loads that
/// stand in a pair with a flag below are seq_cst too, because each of these pairs is "store mine,
/// then look at yours" on both sides:
///   arrival: sender stores tail, loads asleep      | receiver stores asleep, loads tail
///   room:    sender stores starved, loads head     | receiver stores head, loads starved
///   (the sender then stores asleep, loads head     | the receiver then loads the sender's asleep)
/// In the single order of seq_cst operations at least one side sees the other's store: no wake-up
/// is lost.
struct Ring {
  alignas(k_line) SharedWord tail; // sender: entries ever put
  SharedWord starved;              // sender: 1 = found the ring full and wants to be woken
  alignas(k_line) SharedWord head; // receiver: entries ever taken
  alignas(k_line) std::array<std::uint32_t, k_ring_entries> tags;
};

struct LaneControl {
  alignas(k_line) SharedWord asleep; // futex word: 1 = the lane's thread sleeps or is about to
  std::array<Ring, k_max_ranks> from;
};

/// A rank's control segment. Its pages exist only where they were touched: two for each sender and
/// lane.
struct Control {
  std::array<char, 32> token; // proves that the process that opened us reached whom it meant
  std::array<LaneControl, k_max_lanes> lanes;
};

constexpr std::size_t control_bytes(int lanes) {
  return sizeof(Control) - sizeof(LaneControl) * static_cast<std::size_t>(k_max_lanes - lanes);
}

long futex(SharedWord& word, int operation, std::uint32_t value, const timespec* limit) noexcept {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit,
                   nullptr, 0);
}

/// Wakes the lane whose word this is, if it sleeps. The caller's store that the sleeper waits for
/// came before.
void ring_bell(SharedWord& asleep) noexcept {
  if (asleep.load(std::memory_order_seq_cst) != 0 &&
      asleep.exchange(0, std::memory_order_seq_cst) != 0) {
    futex(asleep, FUTEX_WAKE, 1, nullptr);
  }
}

std::string boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id");
  id.erase(id.find_last_not_of('\n') + 1);
  return id;
}

std::array<char, 32> random_token() {
  std::array<unsigned char, 16> raw{};
  if (::getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size())) {
    fail_errno("getrandom", errno);
  }
  std::array<char, 32> text{};
  for (std::size_t i = 0; i < raw.size(); ++i) {
    fmt::format_to_n(&text[2 * i], 2, "{:02x}", raw[i]);
  }
  return text;
}

Fd make_segment(const char* name, std::uint64_t bytes) {
  Fd fd(::memfd_create(name, MFD_CLOEXEC));
  if (!fd) {
    fail_errno("memfd_create", errno);
  }
  if (bytes > static_cast<std::uint64_t>(LLONG_MAX) ||
      ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    fail_errno(fmt::format("ftruncate({} of {} bytes)", name, bytes),
               bytes > LLONG_MAX ? EFBIG : errno);
  }
  return fd;
}

/// A peer's buffer: where it can be opened, and open; for lanes that map it again and again.
struct Segment {
  std::string path;
  Fd fd;
};

struct Peer {
  Mapping control;
  std::vector<Mapping> buffers;
  std::vector<Segment> segments; ///< of each buffer, for NaiveHostLane
  Control* shared = nullptr;
};

/// A lane that keeps all habits.
class HostLane : public MoverLane {
public:
  HostLane(int index, Control& control, const std::vector<Mapping>& buffers)
      : m_index(static_cast<std::size_t>(index)), m_own(control.lanes[m_index]), m_buffers(buffers),
        m_done(k_ring_entries) {}

  void connect(std::size_t self, std::vector<Peer>& peers) {
    m_self = self;
    m_peers = &peers;
    m_put.assign(peers.size(), 0);
    m_room_until.assign(peers.size(), k_ring_entries);
    m_refused.assign(peers.size(), 0);
    m_taken.assign(peers.size(), 0);
    for (std::size_t peer = 0; peer < peers.size(); ++peer) {
      if (peer != self) { // fault the pages of our ring in now, not in the first transfer; it is
                          // ours to write
        ring_to(peer).tags.fill(0);
      }
    }
  }

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    return write_with(peer_rank, source, destination, bytes, tag, id,
                      [&](const Peer& peer) noexcept -> const char* {
                        std::memcpy(&peer.buffers[destination.buffer].bytes()[destination.offset],
                                    from(source), bytes);
                        return nullptr;
                      });
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    std::size_t count = 0;
    for (; count < out.size() && m_done_count > 0; --m_done_count) {
      out[count++] = m_done[m_done_first];
      m_done_first = (m_done_first + 1) % m_done.size();
    }
    if (m_peers == nullptr) {
      return count;
    }
    // Another sender goes first each time, so that a fast one cannot keep the others out of a short
    // `out`.
    const std::size_t ranks = m_peers->size();
    for (std::size_t step = 0; step < ranks && count < out.size(); ++step) {
      const std::size_t sender = (m_turn + step) % ranks;
      if (sender == m_self) {
        continue;
      }
      Ring& ring = m_own.from[sender];
      std::uint32_t& taken = m_taken[sender];
      const std::uint32_t put = ring.tail.load(std::memory_order_acquire);
      if (taken == put) {
        continue;
      }
      while (taken != put && count < out.size()) {
        out[count++] = {Completion::Kind::arrived, ring.tags[taken % k_ring_entries], 0};
        ++taken;
      }
      ring.head.store(taken, std::memory_order_seq_cst);
      if (ring.starved.load(std::memory_order_seq_cst) != 0) {
        ring.starved.store(0, std::memory_order_relaxed);
        ring_bell((*m_peers)[sender].shared->lanes[m_index].asleep);
      }
    }
    m_turn = ranks == 0 ? 0 : (m_turn + 1) % ranks;
    return count;
  }

  void wait(std::chrono::milliseconds limit) noexcept override {
    if (limit.count() <= 0 || m_done_count > 0) {
      return;
    }
    m_own.asleep.store(1, std::memory_order_seq_cst);
    if (!something_to_do()) {
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
      const timespec time{static_cast<time_t>(seconds.count()),
                          static_cast<long>(std::chrono::nanoseconds(limit - seconds).count())};
      futex(m_own.asleep, FUTEX_WAIT, 1,
            &time); // any return will do: the caller polls and comes back
    }
    m_own.asleep.store(
        0, std::memory_order_relaxed); // a bell rung now is for what the caller's poll will find
  }

  std::string error() const override { return fmt::format("write(host): {}", m_error); }

protected:
  /// A write whose payload `copy`(peer) moves, which returns what went wrong or null.
  template <class Copy>
  bool write_with(int peer_rank, Slice source, Slice destination, std::uint64_t bytes,
                  std::uint32_t tag, std::uint64_t id, Copy copy) noexcept {
    if (m_done_count == m_done.size()) {
      return false;
    }
    const auto peer = static_cast<std::size_t>(peer_rank);
    if (m_peers == nullptr || peer_rank < 0 || peer >= m_peers->size() || peer == m_self) {
      return refuse("no such peer", id);
    }
    const std::vector<Mapping>& theirs = (*m_peers)[peer].buffers;
    if (bytes != 0 &&
        (source.buffer >= m_buffers.size() || destination.buffer >= theirs.size() ||
         !fits(source.offset, bytes, m_buffers[source.buffer].bytes().size()) ||
         !fits(destination.offset, bytes, theirs[destination.buffer].bytes().size()))) {
      return refuse("the write reaches outside its buffers", id);
    }
    Ring& ring = ring_to(peer);
    if (m_put[peer] == m_room_until[peer]) {
      m_room_until[peer] = ring.head.load(std::memory_order_acquire) + k_ring_entries;
      if (m_put[peer] == m_room_until[peer]) {
        ring.starved.store(1, std::memory_order_seq_cst);
        m_room_until[peer] = ring.head.load(std::memory_order_seq_cst) + k_ring_entries;
        if (m_put[peer] == m_room_until[peer]) {
          m_refused[peer] = 1;
          return false;
        }
      }
    }
    if (bytes != 0) {
      if (const char* const why = copy((*m_peers)[peer])) {
        return refuse(why, id);
      }
    }
    ring.tags[m_put[peer] % k_ring_entries] = tag;
    ring.tail.store(++m_put[peer], std::memory_order_seq_cst);
    ring_bell((*m_peers)[peer].shared->lanes[m_index].asleep);
    finish({Completion::Kind::sent, 0, id});
    return true;
  }

  [[nodiscard]] const std::byte* from(Slice source) const noexcept {
    return &m_buffers[source.buffer].bytes()[source.offset];
  }

private:
  Ring& ring_to(std::size_t peer) noexcept {
    return (*m_peers)[peer].shared->lanes[m_index].from[m_self];
  }

  void finish(const Completion& completion) noexcept {
    m_done[(m_done_first + m_done_count++) % m_done.size()] = completion;
  }

  bool refuse(const char* why, std::uint64_t id) noexcept {
    m_error = why;
    finish({Completion::Kind::failed, 0, id});
    return true;
  }

  /// The look that follows our store to `asleep` (see Ring). Refused writes that may be tried again
  /// count.
  bool something_to_do() noexcept {
    if (m_peers == nullptr) {
      return false;
    }
    for (std::size_t peer = 0; peer < m_peers->size(); ++peer) {
      if (peer == m_self) {
        continue;
      }
      if (m_own.from[peer].tail.load(std::memory_order_seq_cst) != m_taken[peer]) {
        return true;
      }
      if (m_refused[peer] != 0 &&
          ring_to(peer).head.load(std::memory_order_seq_cst) + k_ring_entries != m_put[peer]) {
        m_refused[peer] = 0;
        return true;
      }
    }
    return false;
  }

  std::size_t m_index;
  LaneControl& m_own;
  const std::vector<Mapping>& m_buffers;
  std::size_t m_self = 0;
  std::vector<Peer>* m_peers = nullptr;
  std::vector<std::uint32_t> m_put; // per peer: tags we ever put into its ring
  std::vector<std::uint32_t>
      m_room_until; // per peer: m_put may grow up to here before `head` must be read again
  std::vector<char> m_refused;        // per peer: the last write found its ring full
  std::vector<std::uint32_t> m_taken; // per sender: tags we ever took
  std::size_t m_turn = 0;
  std::vector<Completion> m_done; // our own completions, a ring: allocated once
  std::size_t m_done_first = 0, m_done_count = 0;
  const char* m_error = "no error";
};

/// A lane without some of the habits: what they are worth is the difference to HostLane.
class NaiveHostLane final : public HostLane {
public:
  NaiveHostLane(int index, Control& control, const std::vector<Mapping>& buffers,
                const Habits& habits)
      : HostLane(index, control, buffers), m_habits(habits) {}

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    return write_with(peer_rank, source, destination, bytes, tag, id,
                      [&](const Peer& peer) noexcept -> const char* {
                        return move(peer, from(source), destination, bytes);
                      });
  }

private:
  static constexpr std::size_t k_header = 64;

  const char* move(const Peer& peer, const std::byte* source, Slice destination,
                   std::uint64_t bytes) noexcept {
    if (m_habits.register_once && m_habits.address_once) {
      copy(&peer.buffers[destination.buffer].bytes()[destination.offset], source, bytes);
      return nullptr;
    }
    const Segment& segment = peer.segments[destination.buffer];
    Fd opened;
    if (!m_habits.address_once) {
      opened = Fd(::open(segment.path.c_str(), O_RDWR | O_CLOEXEC));
      if (!opened) {
        return "the peer's memory cannot be opened again";
      }
    }
    const std::uint64_t start = destination.offset + skew(m_habits);
    const std::uint64_t into_page = start % m_page;
    void* const mapped =
        ::mmap(nullptr, into_page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
               opened ? opened.get() : segment.fd.get(), static_cast<off_t>(start - into_page));
    if (mapped == MAP_FAILED) {
      return "the peer's memory cannot be mapped again";
    }
    copy(static_cast<std::byte*>(mapped) + into_page, source, bytes);
    ::munmap(mapped, into_page + bytes);
    return nullptr;
  }

  void copy(std::byte* destination, const std::byte* source, std::uint64_t bytes) noexcept {
    const std::size_t header =
        m_habits.one_segment ? 0 : std::min<std::uint64_t>(k_header, bytes / 2);
    if (header > 0) {
      std::memcpy(m_header.data(), source, header);
      std::memcpy(destination, m_header.data(), header);
    }
    std::memcpy(destination + header, source + header, bytes - header);
  }

  const std::uint64_t m_page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  Habits m_habits;
  std::array<std::byte, k_header> m_header{};
};

class HostMover final : public Mover {
public:
  explicit HostMover(const Habits& habits) : m_habits(habits), m_token(random_token()) {
    m_capabilities.name = "host";
    m_capabilities.crosses_machines = false;
    m_capabilities.max_write_bytes = UINT64_MAX;
    m_capabilities.max_in_flight = k_ring_entries;
  }

  const MoverCapabilities& capabilities() const noexcept override { return m_capabilities; }

  std::span<std::byte> allocate(std::uint64_t bytes) override {
    if (m_control_fd) {
      fail(ErrorKind::internal, "allocate(host): after open()");
    }
    Fd fd = make_segment("reckon-buffer", skew(m_habits) + bytes);
    m_buffers.emplace_back(fd.get(), bytes, fmt::format("{} bytes of shared memory", bytes), true,
                           skew(m_habits));
    m_buffer_fds.push_back(std::move(fd));
    return m_buffers.back().bytes();
  }

  void open(int lanes) override {
    if (lanes < 1 || lanes > k_max_lanes) {
      fail(ErrorKind::usage,
           fmt::format("open(host): {} lanes; 1 to {} are possible", lanes, k_max_lanes));
    }
    const std::size_t size = control_bytes(lanes);
    m_control_fd = make_segment("reckon-control", size);
    m_control = Mapping(m_control_fd.get(), size, "control segment", false);
    // A memfd starts as zeros, which is every ring empty and every lane awake.
    auto* const control = reinterpret_cast<Control*>(m_control.bytes().data());
    control->token = m_token;
    for (int lane = 0; lane < lanes; ++lane) {
      m_lanes.push_back(m_habits.lane_is_plain()
                            ? std::make_unique<HostLane>(lane, *control, m_buffers)
                            : std::make_unique<NaiveHostLane>(lane, *control, m_buffers, m_habits));
    }
  }

  std::string address() const override {
    Json buffers = Json::array();
    for (std::size_t i = 0; i < m_buffers.size(); ++i) {
      buffers.push_back({{"fd", m_buffer_fds[i].get()}, {"bytes", m_buffers[i].bytes().size()}});
    }
    return Json{{"mover", "host"},
                {"without", without_text(m_habits)},
                {"boot", boot_id()},
                {"pid", ::getpid()},
                {"token", std::string(m_token.data(), m_token.size())},
                {"control", m_control_fd.get()},
                {"lanes", m_lanes.size()},
                {"buffers", buffers}}
        .dump();
  }

  void connect(int self, const std::vector<std::string>& addresses) override {
    if (addresses.size() > static_cast<std::size_t>(k_max_ranks)) {
      fail(ErrorKind::unavailable,
           fmt::format("connect(host): {} ranks; at most {} on one machine; use another transport",
                       addresses.size(), k_max_ranks));
    }
    if (self < 0 || static_cast<std::size_t>(self) >= addresses.size() || m_lanes.empty()) {
      fail(ErrorKind::internal,
           fmt::format("connect(host): rank {} of {}", self, addresses.size()));
    }
    const std::string boot = boot_id();
    m_peers.clear();
    m_peers.resize(addresses.size());
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      if (rank != static_cast<std::size_t>(self)) {
        m_peers[rank] = attach(rank, addresses[rank], boot);
      }
    }
    for (auto& lane : m_lanes) {
      lane->connect(static_cast<std::size_t>(self), m_peers);
    }
  }

  MoverLane& lane(int index) override { return *m_lanes.at(static_cast<std::size_t>(index)); }

private:
  Peer attach(std::size_t rank, const std::string& address, const std::string& boot) const {
    const std::string who = fmt::format("address of rank {}", rank);
    const Json json = parse_json(address, who);
    const JsonView view(json, who);
    view.only({"mover", "without", "boot", "pid", "token", "control", "lanes", "buffers"});
    static_cast<void>(view.at("mover").one_of({"host"}));
    const int pid = view.at("pid").integer(1, INT_MAX);
    if (view.at("boot").string() != boot) {
      fail(ErrorKind::unavailable,
           fmt::format("connect(host): rank {} runs on another machine; choose a transport that "
                       "crosses machines, for example tcp;ofi_rxm",
                       rank));
    }
    if (view.at("lanes").count() != m_lanes.size()) {
      fail(ErrorKind::operation, fmt::format("connect(host): rank {} has {} lanes, this rank {}",
                                             rank, view.at("lanes").count(), m_lanes.size()));
    }
    require_same_habits(m_habits, view.at("without").string(), rank);
    Peer peer;
    peer.control = open_segment(rank, pid, view.at("control").integer(0, INT_MAX),
                                control_bytes(static_cast<int>(m_lanes.size())), false);
    peer.shared = reinterpret_cast<Control*>(peer.control.bytes().data());
    const std::string token = view.at("token").string();
    if (token.size() != peer.shared->token.size() ||
        std::memcmp(token.data(), peer.shared->token.data(), token.size()) != 0) {
      fail(ErrorKind::unavailable, not_reached(rank, pid, "process ids differ"));
    }
    for (const JsonView& buffer : view.at("buffers").elements()) {
      buffer.only({"fd", "bytes"});
      const int number = buffer.at("fd").integer(0, INT_MAX);
      peer.buffers.push_back(
          open_segment(rank, pid, number, buffer.at("bytes").count(), true, skew(m_habits)));
      if (!m_habits.lane_is_plain()) {
        const std::string path = path_of(pid, number);
        peer.segments.push_back({path, Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC))});
        if (!peer.segments.back().fd) {
          fail(ErrorKind::unavailable,
               not_reached(rank, pid, std::generic_category().message(errno)));
        }
      }
    }
    return peer;
  }

  static std::string path_of(int pid, int number) {
    return fmt::format("/proc/{}/fd/{}", pid, number);
  }

  static Mapping open_segment(std::size_t rank, int pid, int number, std::size_t bytes,
                              bool populate, std::size_t skew = 0) {
    const std::string path = path_of(pid, number);
    const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) {
      fail(ErrorKind::unavailable, not_reached(rank, pid, std::generic_category().message(errno)));
    }
    struct stat status {};
    if (::fstat(fd.get(), &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) != skew + bytes) {
      fail(ErrorKind::unavailable, not_reached(rank, pid, "process ids differ"));
    }
    return Mapping(fd.get(), bytes, path, populate, skew);
  }

  static std::string not_reached(std::size_t rank, int pid, const std::string& cause) {
    return fmt::format(
        "connect(host): cannot open the memory of rank {} (process {}): {}; it must run under the "
        "same "
        "user and in the same container, and be alive; else choose another transport",
        rank, pid, cause);
  }

  Habits m_habits;
  MoverCapabilities m_capabilities;
  std::array<char, 32> m_token;
  std::vector<Fd> m_buffer_fds;
  std::vector<Mapping> m_buffers;
  Fd m_control_fd;
  Mapping m_control;
  std::vector<Peer> m_peers;
  std::vector<std::unique_ptr<HostLane>> m_lanes;
};

} // namespace

std::unique_ptr<Mover> make_host_mover(const Habits& habits) {
  return std::make_unique<HostMover>(habits);
}

} // namespace reckon
