// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/rendezvous.hpp"
#include "movers/mover.hpp"
#include "run/job.hpp"
#include "run/lanes.hpp"
#include "run/rank_memory.hpp"
#include "schedule/schedule.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// The reports of a job's ranks when they join.
struct RankPlaces {
  std::vector<std::string> hosts;        ///< by rank
  std::string lanes;                     ///< remarks of RankMemory::settle()
  std::int64_t clock_uncertainty_ns = 0; ///< greatest of all ranks
};

/// One rank of a job: its memory, connected to that of the others, and the lanes that run its
/// programs. The owner decides about the memory's content, the number of rounds and their times.
/// Used by one thread; all arguments must outlive it.
class Session {
public:
  /// Joins: all ranks come here with their part of the same schedules, and all are connected when
  /// this returns. `programs`: the possible rounds, over the same buffers, of which the last
  /// program has the most, with the same number of lanes each. `cpus`: the processor of each lane,
  /// or -1. Of the options the limit and the places count. Throws
  /// Error{unavailable} where the transport cannot do what the plan needs, PeerError when another
  /// rank is the cause, Error otherwise.
  Session(Rendezvous& rendezvous, std::vector<const RankProgram*> programs,
          const RunOptions& options, std::vector<int> cpus, std::unique_ptr<Mover> mover);
  /// Without leave() before it the job has failed: memory that peers may still use stays until the
  /// end of the process.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] const RankPlaces& places() const { return m_places; }
  [[nodiscard]] const RankMemory& memory() const { return *m_memory; }
  [[nodiscard]] std::int64_t root_clock_ns() const; ///< rank 0's monotonic clock, now

  /// Once, before the first round: starts the lanes. `delays` serves the programs' delays.
  void start_lanes(const MakeDelays& delays);
  [[nodiscard]] const Lanes& lanes() const { return *m_lanes; }

  /// Begins a round of program number `program`, with the optimizer's step `step` (from 1 on).
  void start(std::size_t program, std::uint64_t step);
  /// Whether the round is over here, waiting at most `limit`. Throws PeerError with the news that
  /// another rank ended, or Error with the failure of the round.
  [[nodiscard]] bool over_within(std::chrono::milliseconds limit);
  /// Lanes::stopped_within(); true where none were started.
  [[nodiscard]] bool stopped_within(std::chrono::milliseconds limit) {
    return !m_lanes || m_lanes->stopped_within(limit);
  }
  /// Ends the lanes, in the middle of the round, and says which op each of them was waiting for.
  [[nodiscard]] std::string stop_and_describe() { return m_lanes->stop_and_describe(); }

  /// After the last round, by all ranks: afterwards each may free its memory. Throws as the
  /// rendezvous.
  void leave();

private:
  void connect();
  void introduce(const std::string& lanes);

  Rendezvous& m_rendezvous;
  std::vector<const RankProgram*> m_programs;
  const RunOptions& m_options;
  std::vector<int> m_cpus; ///< by lane
  RankPlaces m_places;
  bool m_left = false;
  std::unique_ptr<Mover> m_mover;
  std::optional<RankMemory> m_memory;
  std::vector<std::span<std::byte>> m_reached; ///< our buffers, then those of peers
  std::optional<Lanes> m_lanes;
};

} // namespace reckon
