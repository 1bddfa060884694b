// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/json_fwd.hpp"
#include "movers/handle.hpp"
#include "movers/mover.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon {

// Tells ranks of one machine about arrivals: rings of tags in shared memory, one for each (sender,
// lane), and a futex for sleepers, or a socket for threads that sleep on other descriptors too. For
// movers whose bytes do not pass the operating system. At most 256 ranks and 64 lanes.

inline constexpr std::uint32_t k_mail_entries = 1024; ///< entries of one ring

/// A rank's rings, in its own shared memory.
struct MailControl;

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
  void connect(std::size_t self, std::vector<MailControl*> peers, std::uint32_t first = 0);

  /// Whether put() may be called now. If not, sleep() ends when it may.
  [[nodiscard]] bool has_room(std::size_t peer) noexcept;
  /// All earlier writes of this thread are visible to the taker of the tag.
  void put(std::size_t peer, std::uint32_t tag) noexcept;
  /// Fills `out` with arrivals, from its start; returns how many.
  [[nodiscard]] std::size_t take(std::span<Completion> out) noexcept;
  /// Sleeps until take() may have something, a refused put() may succeed, or the time is over.
  void sleep(std::chrono::nanoseconds limit) noexcept;
  /// As MoverLane's. A wake-up by the descriptor costs about twice as much as one by the futex of
  /// sleep().
  [[nodiscard]] std::optional<LaneSleep> before_sleep(std::chrono::nanoseconds limit) noexcept;
  void after_sleep() noexcept;

private:
  [[nodiscard]] bool something_to_do() noexcept;
  void ring_bell(std::size_t peer) noexcept;

  std::size_t m_lane;
  MailControl& m_own;
  std::vector<MailControl*> m_peers;
  std::vector<std::size_t> m_reached; ///< ranks; the k-th writes into ring k of the others
  std::size_t m_own_ring = 0;
  std::vector<std::uint32_t> m_put;        ///< per peer: tags we ever put into its ring
  std::vector<std::uint32_t> m_room_until; ///< per peer: m_put may grow up to here before `head`
                                           ///< must be read again
  std::vector<char> m_refused;             ///< per peer: the last look found its ring full
  std::vector<std::uint32_t> m_taken;      ///< per sender: tags we ever took
  std::size_t m_turn = 0;
  Fd m_bell; ///< socket that peers wake this lane's before_sleep() by; made when first asked for
  Fd m_bell_rope; ///< socket that wakes others'
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
