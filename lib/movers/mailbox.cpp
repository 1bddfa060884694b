// SPDX-License-Identifier: Apache-2.0
#include "movers/mailbox.hpp"

#include "core/error.hpp"
#include "core/json.hpp"

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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace reckon {
namespace {

constexpr int k_max_ranks = 256;
constexpr int k_max_lanes = 64;
constexpr std::size_t k_line = 128; // two cache lines: the hardware prefetches them in pairs
static_assert((k_mail_entries & (k_mail_entries - 1)) == 0,
              "positions are counted without wrapping");

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
///   arrival: sender stores tail, loads asleep           | receiver stores asleep, loads tail
///   room:    sender stores asleep, starved, loads head  | receiver stores head, loads starved
/// In the single order of seq_cst operations at least one side sees the other's store: no wake-up
/// is lost. A receiver that finds `starved` set takes it back before it looks at the sender's
/// `asleep`, and only who is about to sleep sets it: had a sender set it when it was refused, an
/// answer to its last sleep could take that back in between, and the sender would sleep unknown.
struct Ring {
  alignas(k_line) SharedWord tail; // sender: entries ever put
  SharedWord starved;              // sender: 1 = sleeps, or is about to, for want of room
  alignas(k_line) SharedWord head; // receiver: entries ever taken
  alignas(k_line) std::array<std::uint32_t, k_mail_entries> tags;
};

/// How a lane's thread sleeps, or is about to.
enum Asleep : std::uint32_t { k_awake, k_on_futex, k_on_bell };

struct LaneControl {
  alignas(k_line) SharedWord asleep; // Asleep, and the futex
  sockaddr_un bell;                  // written before the lane first sleeps on it
  socklen_t bell_length;
  std::array<Ring, k_max_ranks> from;
};

} // namespace

/// A rank's control segment. Its pages exist only where they were touched: two for each sender and
/// lane.
struct MailControl {
  std::array<char, 32> token; // proves that the process that opened us reached whom it meant
  std::array<LaneControl, k_max_lanes> lanes;
};

namespace {

constexpr std::size_t control_bytes(int lanes) {
  return sizeof(MailControl) - sizeof(LaneControl) * static_cast<std::size_t>(k_max_lanes - lanes);
}

long futex(SharedWord& word, int operation, std::uint32_t value, const timespec* limit) noexcept {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit,
                   nullptr, 0);
}

Fd datagram_socket() noexcept {
  return Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
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

} // namespace

Mailbox::Mailbox(int lane, MailControl& own) : m_lane(static_cast<std::size_t>(lane)), m_own(own) {}

void Mailbox::connect(std::size_t self, std::vector<MailControl*> peers, std::uint32_t first) {
  m_peers = std::move(peers);
  m_put.assign(m_peers.size(), first);
  m_room_until.assign(m_peers.size(), first + k_mail_entries);
  m_refused.assign(m_peers.size(), 0);
  m_taken.assign(m_peers.size(), first);
  m_reached.clear();
  for (std::size_t rank = 0; rank < m_peers.size(); ++rank) {
    if (rank == self) {
      m_own_ring = m_reached.size();
    }
    if (rank == self || m_peers[rank] != nullptr) {
      m_reached.push_back(rank);
    }
  }
  for (MailControl* const peer : m_peers) {
    if (peer != nullptr) {
      Ring& ring = peer->lanes[m_lane].from[m_own_ring];
      ring.tags.fill(0); // it is ours to write: its pages come now, not in the first transfer
      if (first != 0) {
        ring.head = ring.tail = first;
      }
    }
  }
}

bool Mailbox::has_room(std::size_t peer) noexcept {
  if (m_put[peer] != m_room_until[peer]) {
    return true;
  }
  const Ring& ring = m_peers[peer]->lanes[m_lane].from[m_own_ring];
  m_room_until[peer] = ring.head.load(std::memory_order_acquire) + k_mail_entries;
  m_refused[peer] = m_put[peer] == m_room_until[peer] ? 1 : 0;
  return m_refused[peer] == 0;
}

void Mailbox::put(std::size_t peer, std::uint32_t tag) noexcept {
  LaneControl& lane = m_peers[peer]->lanes[m_lane];
  Ring& ring = lane.from[m_own_ring];
  ring.tags[m_put[peer] % k_mail_entries] = tag;
  ring.tail.store(++m_put[peer], std::memory_order_seq_cst);
  ring_bell(peer);
}

/// Wakes the peer's lane if it sleeps. The caller's store that it waits for came before.
void Mailbox::ring_bell(std::size_t peer) noexcept {
  LaneControl& lane = m_peers[peer]->lanes[m_lane];
  if (lane.asleep.load(std::memory_order_seq_cst) == k_awake) {
    return;
  }
  switch (lane.asleep.exchange(k_awake, std::memory_order_seq_cst)) {
  case k_on_futex:
    futex(lane.asleep, FUTEX_WAKE, 1, nullptr);
    break;
  case k_on_bell: {
    m_bell_rope = m_bell_rope ? std::move(m_bell_rope) : datagram_socket();
    constexpr char k_ring = 0;
    // A full queue wakes as well; a peer that is gone needs no waking.
    static_cast<void>(::sendto(m_bell_rope.get(), &k_ring, sizeof k_ring, MSG_NOSIGNAL,
                               reinterpret_cast<const sockaddr*>(&lane.bell), lane.bell_length));
    break;
  }
  default:
    break;
  }
}

std::size_t Mailbox::take(std::span<Completion> out) noexcept {
  // Another sender goes first each time, so that a fast one cannot keep the others out of a short
  // `out`.
  const std::size_t rings = m_reached.size();
  std::size_t count = 0;
  for (std::size_t step = 0; step < rings && count < out.size(); ++step) {
    const std::size_t number = (m_turn + step) % rings, sender = m_reached[number];
    if (number == m_own_ring) {
      continue;
    }
    Ring& ring = m_own.lanes[m_lane].from[number];
    std::uint32_t& taken = m_taken[sender];
    const std::uint32_t put = ring.tail.load(std::memory_order_acquire);
    if (taken == put) {
      continue;
    }
    while (taken != put && count < out.size()) {
      out[count++] = {Completion::Kind::arrived, ring.tags[taken % k_mail_entries], 0};
      ++taken;
    }
    ring.head.store(taken, std::memory_order_seq_cst);
    if (ring.starved.load(std::memory_order_seq_cst) != 0) {
      ring.starved.store(0, std::memory_order_seq_cst);
      ring_bell(sender);
    }
  }
  m_turn = rings == 0 ? 0 : (m_turn + 1) % rings;
  return count;
}

void Mailbox::sleep(std::chrono::nanoseconds limit) noexcept {
  if (limit.count() <= 0) {
    return;
  }
  SharedWord& asleep = m_own.lanes[m_lane].asleep;
  asleep.store(k_on_futex, std::memory_order_seq_cst);
  if (!something_to_do()) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec time{static_cast<time_t>(seconds.count()),
                        static_cast<long>((limit - seconds).count())};
    futex(asleep, FUTEX_WAIT, k_on_futex, &time); // any return will do: the caller polls
  }
  asleep.store(k_awake, std::memory_order_relaxed); // a bell rung now: the caller's poll finds why
}

std::optional<LaneSleep> Mailbox::before_sleep(std::chrono::nanoseconds limit) noexcept {
  LaneControl& own = m_own.lanes[m_lane];
  if (!m_bell) {
    Fd bell = datagram_socket();
    sockaddr_un any{};
    any.sun_family = AF_UNIX;
    own.bell_length = sizeof own.bell;
    // A name that the kernel chooses, which goes with the socket.
    if (!bell ||
        ::bind(bell.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any.sun_family) != 0 ||
        ::getsockname(bell.get(), reinterpret_cast<sockaddr*>(&own.bell), &own.bell_length) != 0) {
      return LaneSleep{-1, std::min(limit, k_blind_nap)};
    }
    m_bell = std::move(bell);
  }
  own.asleep.store(k_on_bell, std::memory_order_seq_cst);
  if (something_to_do()) {
    own.asleep.store(k_awake, std::memory_order_relaxed);
    return std::nullopt;
  }
  return LaneSleep{m_bell.get(), limit};
}

void Mailbox::after_sleep() noexcept {
  m_own.lanes[m_lane].asleep.store(k_awake, std::memory_order_relaxed);
  char ring = 0;
  while (::recv(m_bell.get(), &ring, sizeof ring, 0) >= 0) {
  }
}

/// The look that follows our store to `asleep` (see Ring). Refused tags that may be put now count.
bool Mailbox::something_to_do() noexcept {
  for (std::size_t number = 0; number < m_reached.size(); ++number) {
    if (number == m_own_ring) {
      continue;
    }
    const std::size_t peer = m_reached[number];
    if (m_own.lanes[m_lane].from[number].tail.load(std::memory_order_seq_cst) != m_taken[peer]) {
      return true;
    }
    if (m_refused[peer] != 0) {
      Ring& to_peer = m_peers[peer]->lanes[m_lane].from[m_own_ring];
      to_peer.starved.store(1, std::memory_order_seq_cst);
      if (to_peer.head.load(std::memory_order_seq_cst) + k_mail_entries != m_put[peer]) {
        m_refused[peer] = 0;
        return true;
      }
    }
  }
  return false;
}

MailboxSegment::MailboxSegment(const char* mover, int lanes) : m_lanes(lanes) {
  if (lanes < 1 || lanes > k_max_lanes) {
    fail(ErrorKind::usage,
         fmt::format("open({}): {} lanes; 1 to {} are possible", mover, lanes, k_max_lanes));
  }
  const std::size_t size = control_bytes(lanes);
  m_fd = make_shared_memory("reckon-control", size);
  // A memfd starts as zeros, which is every ring empty and every lane awake.
  m_mapping = Mapping(m_fd.get(), size, "control segment", false);
  control().token = random_token();
}

MailControl& MailboxSegment::control() const noexcept {
  return *reinterpret_cast<MailControl*>(m_mapping.bytes().data());
}

Json MailboxSegment::address() const {
  const auto& token = control().token;
  return Json{{"boot", boot_id()},
              {"pid", ::getpid()},
              {"token", std::string(token.data(), token.size())},
              {"control", m_fd.get()},
              {"lanes", m_lanes}};
}

PeerMail MailboxSegment::attach(const char* mover, std::size_t rank,
                                const JsonView& address) const {
  const int pid = address.at("pid").integer(1, INT_MAX);
  if (address.at("boot").string() != boot_id()) {
    fail(ErrorKind::unavailable,
         fmt::format("connect({}): rank {} runs on another machine; choose a transport that "
                     "crosses machines, for example tcp;ofi_rxm",
                     mover, rank));
  }
  if (address.at("lanes").count() != static_cast<std::uint64_t>(m_lanes)) {
    fail(ErrorKind::operation, fmt::format("connect({}): rank {} has {} lanes, this rank {}", mover,
                                           rank, address.at("lanes").count(), m_lanes));
  }
  PeerMail peer;
  peer.pid = pid;
  peer.mapping = map_of_peer(mover, rank, pid, address.at("control").integer(0, INT_MAX),
                             control_bytes(m_lanes), false);
  peer.shared = reinterpret_cast<MailControl*>(peer.mapping.bytes().data());
  const std::string token = address.at("token").string();
  if (token.size() != peer.shared->token.size() ||
      std::memcmp(token.data(), peer.shared->token.data(), token.size()) != 0) {
    fail(ErrorKind::unavailable, peer_not_reached(mover, rank, pid, "process ids differ"));
  }
  return peer;
}

void check_mail_ranks(const char* mover, int self, const std::vector<std::string>& addresses) {
  const std::size_t ranks = addresses.size();
  const auto reached =
      ranks - static_cast<std::size_t>(std::count(addresses.begin(), addresses.end(), ""));
  if (reached > static_cast<std::size_t>(k_max_ranks)) {
    fail(ErrorKind::unavailable,
         fmt::format("connect({}): {} ranks; at most {} on one machine; use another transport",
                     mover, reached, k_max_ranks));
  }
  if (self < 0 || static_cast<std::size_t>(self) >= ranks) {
    fail(ErrorKind::internal, fmt::format("connect({}): rank {} of {}", mover, self, ranks));
  }
}

std::string boot_id() {
  std::string id = read_file("/proc/sys/kernel/random/boot_id");
  id.erase(id.find_last_not_of('\n') + 1);
  return id;
}

std::string network_id() {
  const std::string boot = boot_id();
  struct stat status {};
  if (::stat("/proc/self/ns/net", &status) != 0) {
    return boot;
  }
  return fmt::format("{} {}", boot, status.st_ino);
}

Fd make_shared_memory(const char* name, std::uint64_t bytes) {
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

std::string path_of_peer(int pid, int number) {
  return fmt::format("/proc/{}/fd/{}", pid, number);
}

Mapping map_of_peer(const char* mover, std::size_t rank, int pid, int number, std::uint64_t bytes,
                    bool populate, std::size_t skew) {
  const std::string path = path_of_peer(pid, number);
  const Fd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) {
    fail(ErrorKind::unavailable,
         peer_not_reached(mover, rank, pid, std::generic_category().message(errno)));
  }
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) != skew + bytes) {
    fail(ErrorKind::unavailable, peer_not_reached(mover, rank, pid, "process ids differ"));
  }
  return Mapping(fd.get(), bytes, path, populate, skew);
}

std::string peer_not_reached(const char* mover, std::size_t rank, int pid,
                             const std::string& cause) {
  return fmt::format(
      "connect({}): cannot open the memory of rank {} (process {}): {}; it must run under the same "
      "user and in the same container, and be alive; else choose another transport",
      mover, rank, pid, cause);
}

} // namespace reckon
