// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/mover.hpp"
#include "run/delays.hpp"
#include "run/executor.hpp"
#include "schedule/schedule.hpp"
#include "schedule/timeline.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace reckon {

/// The lanes of one rank, each a thread that sleeps between rounds. A round is one of several
/// programs over the same buffers. Used by one thread; all arguments must outlive it.
class Lanes {
public:
  /// `programs`: the possible rounds, with the same number of lanes each. `cpus`: the processor of
  /// each lane, or -1. `delays` serves the programs' delays. Throws Error{operation} where the
  /// system refuses a thread.
  Lanes(std::span<const RankProgram* const> programs, Mover& mover,
        std::span<const std::span<std::byte>> buffers, const std::vector<int>& cpus,
        const MakeDelays& delays);
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  /// Begins a round of program number `program`, with the optimizer's step `step` (from 1 on).
  void start(std::size_t program, std::uint64_t step);
  /// True when all lanes have finished their round.
  [[nodiscard]] bool finished_within(std::chrono::milliseconds limit);
  /// Times of the last round, when it is finished.
  [[nodiscard]] const std::vector<LaneTimes>& times() const { return m_times; }
  /// Begin and end of each op of the last round; monotonic_ns().
  [[nodiscard]] RankTimeline timeline() const;
  /// Ends the lanes for good. False: some lane has not answered within `limit`; it hangs in an
  /// operation that cannot be ended, and so would the destructor.
  [[nodiscard]] bool stopped_within(std::chrono::milliseconds limit);
  /// Ends the lanes soon, then says which op each of them was waiting for.
  [[nodiscard]] std::string stop_and_describe();
  /// The failure of the last round: "lane 1: ..."; empty without a failure.
  [[nodiscard]] std::string error() const;

private:
  void work(std::size_t lane, int cpu);
  void end();

  std::vector<std::vector<std::unique_ptr<LaneExecutor>>> m_executors; ///< [program][lane]
  std::vector<LaneTimes> m_times; ///< written by the lane, read after finished_within()
  std::mutex m_mutex;
  std::condition_variable m_wake, m_finished;
  std::uint64_t m_round = 0, m_step = 0;
  std::size_t m_running = 0, m_program = 0;
  bool m_quit = false;
  std::atomic<bool> m_stop{false};
  std::vector<std::jthread> m_threads; ///< last: joined before everything they use goes
};

} // namespace reckon
