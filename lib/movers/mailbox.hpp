// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/json_fwd.hpp"
#include "movers/handle.hpp"
#include "movers/mail_rings.hpp"
#include "movers/mover.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <sys/socket.h>
#include <sys/un.h>
#include <vector>

namespace reckon {

// Tells ranks of one machine about arrivals: rings of tags in shared memory (mail_rings.hpp), and a
// futex for sleepers, or a socket for threads that sleep on other descriptors too. For movers whose
// bytes do not pass the operating system. At most 256 ranks and 64 lanes.

inline constexpr std::uint32_t k_mail_entries = 1024; ///< entries of one ring

/// A socket that its owner sleeps on.
struct BellAddress {
  sockaddr_un name;
  socklen_t length;
};

/// Processes that share memory.
struct SharedMemory {
  using Word = std::atomic<std::uint32_t>;
  using Bell = BellAddress;
  static constexpr std::uint32_t k_entries = k_mail_entries;
  static constexpr std::size_t k_ranks = 256;
  static void wake(Word& word) noexcept;
  void ring(const Bell& bell) noexcept;

private:
  Fd m_rope; ///< socket that wakes others; made when first used
};

/// A rank's rings, in its own shared memory. Its pages exist only where they were touched: two for
/// each sender and lane.
struct MailControl {
  std::array<char, 32> token; // proves that the process that opened us reached whom it meant
  std::array<LaneMail<SharedMemory>, 64> lanes;
};

/// A rank's rings as another rank sees them.
struct PeerMail {
  Mapping mapping;
  MailControl* shared = nullptr;
  int pid = 0;
};

/// One lane's view: tags to and from the same lane of others. One thread.
class Mailbox {
public:
  Mailbox(int lane, MailControl& own);
  /// Peers' rings by rank, null for `self` and for ranks out of reach; all reached ranks have the
  /// same list. They outlive this. Counts of tags, which wrap at 2^32, start at `first`: the same
  /// on all sides, and other than 0 only while nobody sends (tests).
  void connect(std::size_t self, const std::vector<MailControl*>& peers, std::uint32_t first = 0);

  /// Whether put() may be called now. If not, sleep() ends when it may.
  [[nodiscard]] bool has_room(std::size_t peer) noexcept { return m_rings.has_room(peer); }
  /// All earlier writes of this thread are visible to the taker of the tag.
  void put(std::size_t peer, std::uint32_t tag) noexcept { m_rings.put(peer, tag); }
  /// Fills `out` with arrivals, from its start; returns how many.
  [[nodiscard]] std::size_t take(std::span<Completion> out) noexcept { return m_rings.take(out); }
  /// Sleeps until take() may have something, a refused put() may succeed, or the time is over.
  void sleep(std::chrono::nanoseconds limit) noexcept;
  /// As MoverLane's. A wake-up by the descriptor costs about twice as much as one by the futex of
  /// sleep().
  [[nodiscard]] std::optional<LaneSleep> before_sleep(std::chrono::nanoseconds limit) noexcept;
  void after_sleep() noexcept;

private:
  std::size_t m_lane;
  LaneMail<SharedMemory>& m_own;
  MailRings<SharedMemory> m_rings;
  Fd m_bell; ///< socket that peers wake this lane's before_sleep() by; made when first asked for
};

/// A rank's own rings, and the way to those of others. Throws Error; `mover` is the name in its
/// text.
class MailboxSegment {
public:
  MailboxSegment(const char* mover, int lanes);
  [[nodiscard]] MailControl& control() const noexcept;
  /// Members boot, pid, token, control and lanes of an address.
  [[nodiscard]] Json address() const;
  /// The rings in a rank's address, which has these members. Throws Error{unavailable} when it runs
  /// on another machine or cannot be reached, Error{operation} when it has other lanes.
  [[nodiscard]] PeerMail attach(const char* mover, std::size_t rank, const JsonView& address) const;

private:
  int m_lanes;
  Fd m_fd;
  Mapping m_mapping;
};

/// Throws unless `self` is among the ranks and the reached ranks are not too many.
void check_mail_ranks(const char* mover, int self, const std::vector<std::string>& addresses);

/// Identity of this machine since its start.
[[nodiscard]] std::string boot_id();
/// The same, only for processes that share its network interfaces.
[[nodiscard]] std::string network_id();
/// Zeroed memory without a name in a file system.
[[nodiscard]] Fd make_shared_memory(const char* name, std::uint64_t bytes);
/// "/proc/PID/fd/N"
[[nodiscard]] std::string path_of_peer(int pid, int number);
/// Maps a peer's shared memory. Throws Error{unavailable}.
[[nodiscard]] Mapping map_of_peer(const char* mover, std::size_t rank, int pid, int number,
                                  std::uint64_t bytes, bool populate, std::size_t skew = 0);
[[nodiscard]] std::string peer_not_reached(const char* mover, std::size_t rank, int pid,
                                           const std::string& cause);

} // namespace reckon
