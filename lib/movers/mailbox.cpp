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
#include <sys/stat.h>
#include <sys/syscall.h>
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

struct LaneControl {
  alignas(k_line) SharedWord asleep; // futex word: 1 = the lane's thread sleeps or is about to
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

/// Wakes the lane whose word this is, if it sleeps. The caller's store that the sleeper waits for
/// came before.
void ring_bell(SharedWord& asleep) noexcept {
  if (asleep.load(std::memory_order_seq_cst) != 0 &&
      asleep.exchange(0, std::memory_order_seq_cst) != 0) {
    futex(asleep, FUTEX_WAKE, 1, nullptr);
  }
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
  m_self = self;
  m_peers = std::move(peers);
  m_put.assign(m_peers.size(), first);
  m_room_until.assign(m_peers.size(), first + k_mail_entries);
  m_refused.assign(m_peers.size(), 0);
  m_taken.assign(m_peers.size(), first);
  for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
    if (peer != self) {
      Ring& ring = m_peers[peer]->lanes[m_lane].from[self];
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
  const Ring& ring = m_peers[peer]->lanes[m_lane].from[m_self];
  m_room_until[peer] = ring.head.load(std::memory_order_acquire) + k_mail_entries;
  m_refused[peer] = m_put[peer] == m_room_until[peer] ? 1 : 0;
  return m_refused[peer] == 0;
}

void Mailbox::put(std::size_t peer, std::uint32_t tag) noexcept {
  LaneControl& lane = m_peers[peer]->lanes[m_lane];
  Ring& ring = lane.from[m_self];
  ring.tags[m_put[peer] % k_mail_entries] = tag;
  ring.tail.store(++m_put[peer], std::memory_order_seq_cst);
  ring_bell(lane.asleep);
}

std::size_t Mailbox::take(std::span<Completion> out) noexcept {
  // Another sender goes first each time, so that a fast one cannot keep the others out of a short
  // `out`.
  const std::size_t ranks = m_peers.size();
  std::size_t count = 0;
  for (std::size_t step = 0; step < ranks && count < out.size(); ++step) {
    const std::size_t sender = (m_turn + step) % ranks;
    if (sender == m_self) {
      continue;
    }
    Ring& ring = m_own.lanes[m_lane].from[sender];
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
      ring_bell(m_peers[sender]->lanes[m_lane].asleep);
    }
  }
  m_turn = ranks == 0 ? 0 : (m_turn + 1) % ranks;
  return count;
}

void Mailbox::sleep(std::chrono::nanoseconds limit) noexcept {
  if (limit.count() <= 0) {
    return;
  }
  SharedWord& asleep = m_own.lanes[m_lane].asleep;
  asleep.store(1, std::memory_order_seq_cst);
  if (!something_to_do()) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec time{static_cast<time_t>(seconds.count()),
                        static_cast<long>((limit - seconds).count())};
    futex(asleep, FUTEX_WAIT, 1, &time); // any return will do: the caller polls and comes back
  }
  asleep.store(0, std::memory_order_relaxed); // a bell rung now is for what the caller's poll finds
}

/// The look that follows our store to `asleep` (see Ring). Refused tags that may be put now count.
bool Mailbox::something_to_do() noexcept {
  for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
    if (peer == m_self) {
      continue;
    }
    if (m_own.lanes[m_lane].from[peer].tail.load(std::memory_order_seq_cst) != m_taken[peer]) {
      return true;
    }
    if (m_refused[peer] != 0) {
      Ring& to_peer = m_peers[peer]->lanes[m_lane].from[m_self];
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

void check_mail_ranks(const char* mover, int self, std::size_t ranks) {
  if (ranks > static_cast<std::size_t>(k_max_ranks)) {
    fail(ErrorKind::unavailable,
         fmt::format("connect({}): {} ranks; at most {} on one machine; use another transport",
                     mover, ranks, k_max_ranks));
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
