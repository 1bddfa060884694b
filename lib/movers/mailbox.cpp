// SPDX-License-Identifier: Apache-2.0
#include "movers/mailbox.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/secrets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

namespace reckon {
namespace {

using SharedLane = LaneMail<SharedMemory>;
constexpr auto k_max_ranks = static_cast<int>(SharedMemory::k_ranks);
constexpr auto k_max_lanes = static_cast<int>(std::tuple_size_v<decltype(MailControl::lanes)>);

using SharedWord = SharedMemory::Word;
static_assert(SharedWord::is_always_lock_free && sizeof(SharedWord) == sizeof(std::uint32_t),
              "words in shared memory must be plain words, also to the kernel's futex");

constexpr std::size_t control_bytes(int lanes) {
  return sizeof(MailControl) - sizeof(SharedLane) * static_cast<std::size_t>(k_max_lanes - lanes);
}

long futex(SharedWord& word, int operation, std::uint32_t value, const timespec* limit) noexcept {
  return ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, limit,
                   nullptr, 0);
}

Fd datagram_socket() noexcept {
  return Fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

} // namespace

void SharedMemory::wake(Word& word) noexcept {
  futex(word, FUTEX_WAKE, 1, nullptr);
}

void SharedMemory::ring(const Bell& bell) noexcept {
  m_rope = m_rope ? std::move(m_rope) : datagram_socket();
  constexpr char k_ring = 0;
  // A full queue wakes as well; a peer that is gone needs no waking.
  static_cast<void>(::sendto(m_rope.get(), &k_ring, sizeof k_ring, MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr*>(&bell.name), bell.length));
}

Mailbox::Mailbox(int lane, MailControl& own)
    : m_lane(static_cast<std::size_t>(lane)), m_own(own.lanes[m_lane]), m_rings(m_own) {}

void Mailbox::connect(std::size_t self, const std::vector<MailControl*>& peers,
                      std::uint32_t first) {
  std::vector<SharedLane*> lanes;
  for (MailControl* const peer : peers) {
    lanes.push_back(peer == nullptr ? nullptr : &peer->lanes[m_lane]);
  }
  m_rings.connect(self, std::move(lanes), first);
}

void Mailbox::sleep(std::chrono::nanoseconds limit) noexcept {
  if (limit.count() <= 0 || !m_rings.fall_asleep(k_on_word)) {
    return;
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
  const timespec time{static_cast<time_t>(seconds.count()),
                      static_cast<long>((limit - seconds).count())};
  futex(m_own.asleep, FUTEX_WAIT, k_on_word, &time); // any return will do: the caller polls
  m_rings.wake_up();
}

std::optional<LaneSleep> Mailbox::before_sleep(std::chrono::nanoseconds limit) noexcept {
  if (!m_bell) {
    Fd bell = datagram_socket();
    sockaddr_un any{};
    any.sun_family = AF_UNIX;
    BellAddress& own = m_own.bell;
    own.length = sizeof own.name;
    // A name that the kernel chooses, which goes with the socket.
    if (!bell ||
        ::bind(bell.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any.sun_family) != 0 ||
        ::getsockname(bell.get(), reinterpret_cast<sockaddr*>(&own.name), &own.length) != 0) {
      return LaneSleep{-1, std::min(limit, k_blind_nap)};
    }
    m_bell = std::move(bell);
  }
  return m_rings.fall_asleep(k_on_bell) ? std::optional(LaneSleep{m_bell.get(), limit})
                                        : std::nullopt;
}

void Mailbox::after_sleep() noexcept {
  m_rings.wake_up();
  char ring = 0;
  while (::recv(m_bell.get(), &ring, sizeof ring, 0) >= 0) {
  }
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
  std::ranges::copy(secret_text(), control().token.begin());
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
  if (!same_secret(token, std::string_view(peer.shared->token.data(), peer.shared->token.size()))) {
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
