// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/units.hpp"
#include "launch/environment.hpp"
#include "launch/peer_error.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// The control plane of a job: every rank keeps one TCP connection to rank 0. Nothing of a gradient
/// passes here; it carries addresses before the first iteration, barriers around iterations, and
/// the news that somebody died.
///
/// Everything throws PeerError naming the rank when a peer closes its connection, or does not
/// answer within the limit. Used by one thread.
class Rendezvous {
public:
  /// Rank 0 listens where the environment says, or takes over `listener` (already listening); the
  /// others connect, trying again until `limit`. All must present the same token, protocol
  /// version, job size and `digest` (of the plan).
  Rendezvous(const JobEnvironment& job, const std::string& digest, Seconds limit,
             Fd listener = Fd());
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  [[nodiscard]] int rank() const { return m_job.rank; }
  [[nodiscard]] int size() const { return m_job.size; }

  /// Everybody's text, in rank order; returns when all have called.
  std::vector<std::string> all_gather(const std::string& mine, Seconds limit);
  /// Rank 0's text, at every rank.
  std::string broadcast(const std::string& from_root, Seconds limit);
  /// Looks for news without waiting longer than `limit`: throws when somebody died, gave up or was
  /// interrupted.
  void watch(Seconds limit);
  /// Tells everybody why this rank gives up. Never throws.
  void give_up(const std::string& why) noexcept;

  /// What to add to this machine's monotonic_ns() to get rank 0's, and how far off that may be.
  struct ClockOffset {
    std::int64_t offset_ns = 0, uncertainty_ns = 0;
  };
  [[nodiscard]] ClockOffset clock_offset() const { return m_offset; }

private:
  struct Peer {
    int rank = -1;
    Fd socket;
    std::string host;
    std::string received;              ///< bytes that are not a whole message yet
    std::vector<std::string> messages; ///< whole messages not asked for yet, oldest first
  };
  void accept_all(Fd listener, const std::string& hello, std::int64_t deadline_ns);
  void connect_to_root(const std::string& hello, std::int64_t deadline_ns);
  void measure_clock(std::int64_t deadline_ns);
  void send(Peer& peer, char kind, const std::string& text);
  /// Moves whole messages from `received` to `messages`; throws PeerError when the peer says that
  /// it gives up.
  void take_messages(Peer& peer);
  /// Reads what is there from any peer; waits until `deadline_ns` at most for something.
  void pump(std::int64_t deadline_ns);
  std::string next_message(Peer& peer, std::int64_t deadline_ns, const char* doing);
  [[nodiscard]] std::string name_of(const Peer& peer) const;

  JobEnvironment m_job;
  std::vector<Peer> m_peers; ///< rank 0: ranks 1, 2, ...; others: rank 0 alone
  ClockOffset m_offset;
};

} // namespace reckon
