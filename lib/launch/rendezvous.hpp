// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/units.hpp"
#include "launch/connection.hpp"
#include "launch/environment.hpp"
#include "launch/peer_error.hpp"
#include "launch/reception.hpp"

#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <poll.h>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace reckon {

/// A rank was silent for this long: it has stopped, or its machine or link is down.
inline constexpr Seconds k_default_peer_limit{10};
/// Shorter limits would mistake a busy machine for a dead one.
inline constexpr Seconds k_least_peer_limit{2};
/// Time in which the news of a rank that ended reaches all ranks, also on a busy machine.
inline constexpr Seconds k_news_limit{3};

/// For a process that still exists five seconds after the news that a rank has ended: it may hang
/// in an operation that cannot be ended, of a device for example.
enum class AfterNews : std::uint8_t {
  end_process, ///< exit status 4, the news on standard error
  stay,        ///< its owner decides
};

/// The control plane of a job: every rank keeps one TCP connection to rank 0. No gradients pass
/// here; it carries addresses before the first iteration, barriers around iterations, and the news
/// that a rank died.
///
/// All functions throw PeerError, which names a rank and its host, when a rank has closed its
/// connection (it ended), was silent for the peer limit (it was stopped, its machine or link is
/// down), gave up, or does not come to a step within the step's limit. A thread says twice a second
/// that this rank lives, and listens while nobody calls: a long computation is no death, and bad
/// news is passed on at once.
///
/// Used by one thread (and its own). Children of fork() have none of its connections.
class Rendezvous {
public:
  /// Rank 0 listens where the environment says, or takes over `listener` (already listening); the
  /// others connect, trying again until `limit`. All must prove that they know the token, which is
  /// not sent, and have the same program version, job size and `digest` (of the plan). Who knows
  /// the token and differs ends the job; without a token, or without knowing it, nobody does. A
  /// stop of `cancel` makes what is under way, this included, and all that follows throw
  /// Error{operation} within a tenth of a second, but for what a launcher's board or a name server
  /// keeps waiting.
  Rendezvous(JobEnvironment job, const std::string& digest, Seconds limit, Fd listener = Fd(),
             Seconds peer_limit = k_default_peer_limit,
             AfterNews after_news = AfterNews::end_process, std::stop_token cancel = {});
  /// Closes together with the others, waiting for them two seconds at most; not after an exception.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  [[nodiscard]] int rank() const { return m_job.rank; }
  [[nodiscard]] int size() const { return m_job.size; }
  [[nodiscard]] std::string own_name() const; ///< "rank 2 (host)"

  /// Everybody's text, in rank order; returns when all have called.
  std::vector<std::string> all_gather(const std::string& mine, Seconds limit);
  /// Rank 0's text, at every rank.
  std::string broadcast(const std::string& from_root, Seconds limit);
  /// Checks for news without waiting longer than `limit`: throws when a rank died, gave up or was
  /// interrupted.
  void watch(Seconds limit);
  /// A failure here may be the consequence of a peer's death whose news is on its way: waits for
  /// the news and throws it if it comes.
  void blame_a_peer(Seconds patience);
  /// Does `step`, whose Error may be that consequence: then it is thrown only when no news came.
  template <typename Step>
  decltype(auto) or_blame_a_peer(Seconds patience, Step&& step) {
    try {
      return std::forward<Step>(step)();
    } catch (const PeerError&) {
      throw;
    } catch (const Error&) {
      blame_a_peer(patience);
      throw;
    }
  }
  /// The time that a transport may need to notice a dead peer whose packets vanish, and the news.
  [[nodiscard]] Seconds patience() const { return peer_limit() + Seconds(1); }
  [[nodiscard]] Seconds peer_limit() const {
    return Seconds(static_cast<double>(m_peer_limit_ns) * 1e-9);
  }
  /// Tells everybody why this rank gives up, in words that name the rank that `cause` is of. Never
  /// throws.
  void give_up(const std::exception& cause) noexcept;

  /// The offset from this machine's monotonic_ns() to rank 0's, and its possible error.
  struct ClockOffset {
    std::int64_t offset_ns = 0, uncertainty_ns = 0;
  };
  [[nodiscard]] ClockOffset clock_offset() const { return m_offset; }

private:
  struct Peer {
    int rank = -1;
    Connection connection;
    std::deque<std::string> messages; ///< not asked for yet
    bool left = false;                ///< it said goodbye
    std::int64_t waited_ns = 0;       ///< when it last said that it waits for another rank itself
  };

  void accept_all(Fd listener, const std::string& digest, std::int64_t deadline_ns, Seconds limit);
  void welcome(Reception::Guest guest, const std::string& digest, Reception& reception);
  void connect_to_root(const std::string& digest, std::int64_t deadline_ns);
  [[nodiscard]] std::string place_of_root() const;
  [[nodiscard]] Fd reach_root(std::int64_t deadline_ns);
  /// Rank 0's next text before this rank is in; nothing where it has no room now.
  [[nodiscard]] std::optional<std::string> answer_of_root(Connection& root,
                                                          std::int64_t deadline_ns);
  /// False: rank 0 has no room now.
  [[nodiscard]] bool introduce(Connection& root, const std::string& digest,
                               std::int64_t deadline_ns);
  void measure_clock(Seconds limit);
  void farewell();
  void keep_watch(const std::stop_token& stop);

  // All of these with m_mutex held.
  /// One round: sends the queued messages and, when it is time, the sign of life, waits for
  /// something until `deadline_ns` (100 ms at most), reads. `more` is polled as well. Throws
  /// neither bad news nor an interrupt, because m_watch calls it, too: raise_trouble() does.
  void pump(std::int64_t deadline_ns, std::vector<pollfd> more = {});
  void hear(Peer& peer);
  void check_silence();
  /// From now on every call throws the first trouble; all other ranks are told.
  void declare(const std::string& trouble, bool tell = true);
  /// Throws the trouble, or that this was cancelled or the process interrupted.
  void raise_trouble() const;
  void stop_if_cancelled() const; ///< the same without the trouble
  [[noreturn]] void raise(const std::string& trouble);
  std::string next_message(Peer& peer, Seconds limit, const std::string& doing);
  void send_out(std::int64_t deadline_ns);
  [[nodiscard]] std::string name_of(const Peer& peer) const;

  JobEnvironment m_job;
  std::string m_host;
  std::int64_t m_peer_limit_ns;
  AfterNews m_after_news;
  std::stop_token m_cancel;
  int m_exceptions; ///< under way when this was made
  ClockOffset m_offset;
  std::mutex m_mutex;        ///< guards the members below
  std::vector<Peer> m_peers; ///< rank 0: ranks 1, 2, ...; others: rank 0 alone
  std::optional<std::string> m_trouble;
  std::int64_t m_trouble_ns = 0, m_last_pump_ns = 0, m_next_beat_ns = 0;
  bool m_paused = false;  ///< between the last two pumps
  bool m_waiting = false; ///< rank 0 waits for a rank, as the others then do for it
  std::jthread m_watch;   ///< last: joined before everything it uses goes
};

} // namespace reckon
