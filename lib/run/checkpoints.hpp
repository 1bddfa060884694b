// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "launch/peer_fields.hpp"
#include "run/checkpoint_files.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace reckon {

/// The outcome of a run's checkpoints; the same at every rank.
struct CheckpointCounts {
  std::uint64_t complete = 0;
  std::uint64_t skipped = 0; ///< due while the one before was still being written
  std::uint64_t failed = 0;
  std::string first_failure;
  std::uint64_t bytes = 0;           ///< bytes of one checkpoint, all ranks together
  std::vector<double> write_seconds; ///< of each complete one: the slowest rank's
};

/// The progress of one rank with its checkpoints, which it reports at a barrier.
struct CheckpointState {
  bool busy = false;
  std::uint64_t bytes = 0; ///< of its part of one checkpoint
  std::string digest, error;
  double seconds = 0;
  std::uint64_t manifest =
      0; ///< rank 0: step of the last checkpoint that was declared complete or failed
  std::string manifest_error; ///< rank 0: why it failed
  [[nodiscard]] PeerFields fields();
};

/// One rank's part in saving checkpoints while iterations go on. A thread of low priority writes
/// the snapshot that an iteration left in the rank's memory. Ranks report their progress at the
/// barriers of the iterations, and rank 0 declares a checkpoint complete once every part is on
/// disk. The last two complete checkpoints are kept.
///
/// Used by one thread (and its own).
class Checkpoints {
public:
  /// Saves after every `every` steps. `saving` is this rank's program with_snapshot(), `views` its
  /// memory; both outlive this. Makes the folder, and removes this rank's files from it except the
  /// checkpoints after the steps in `keep`: the last two complete ones, in ascending order. The run
  /// resumes from the last.
  Checkpoints(CheckpointFolder folder, CheckpointJob job, std::uint64_t every, Optimizer optimizer,
              const RankProgram& saving, Views views, std::vector<std::uint64_t> keep);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// Whether the iteration after `steps` steps saves, if the writers have finished the one before
  /// by then. The checkpoint that the run resumed from exists already.
  [[nodiscard]] bool due(std::uint64_t steps) const {
    return steps > m_first && steps % m_every == 0;
  }
  /// This rank's thread has nothing to write.
  [[nodiscard]] bool idle() const;
  [[nodiscard]] bool idle_within(std::chrono::milliseconds limit) const;

  /// This rank's report at a barrier.
  [[nodiscard]] CheckpointState state() const;
  /// Takes every rank's report, by rank. Returns whether the next iteration, after `steps` steps,
  /// saves; without a number no iteration follows.
  bool hear(std::span<const CheckpointState> states, std::optional<std::uint64_t> steps);
  /// A rank was writing when it spoke last.
  [[nodiscard]] bool somebody_writes() const { return m_somebody_writes; }
  /// Nothing is left to report: every checkpoint is complete or has failed, and every rank knows.
  [[nodiscard]] bool concluded() const { return !m_pending && !m_declared; }

  /// The snapshot after `steps` steps is in memory; `wrong` describes its fault, if any.
  void save(std::uint64_t steps, const std::string& wrong);
  [[nodiscard]] const CheckpointCounts& counts() const { return m_counts; }

private:
  void work(const std::stop_token& stop);
  void give(std::function<void()> task);
  void hear_of_manifest(const CheckpointState& root);
  void hear_of_parts(std::span<const CheckpointState> states);
  void fail_one(std::uint64_t step, const std::string& why);

  CheckpointFolder m_folder;
  CheckpointJob m_job;
  std::uint64_t m_every, m_first;
  Optimizer m_optimizer;
  const RankProgram& m_saving;
  Views m_views;

  // The same at every rank.
  CheckpointCounts m_counts;
  std::optional<std::uint64_t> m_pending;  ///< parts are being written
  std::optional<std::uint64_t> m_declared; ///< all parts are there, rank 0 writes so
  bool m_somebody_writes = false;
  std::vector<std::uint64_t> m_complete; ///< the kept ones, at most two

  mutable std::mutex m_mutex; ///< guards the members below
  mutable std::condition_variable_any m_change;
  CheckpointState m_told; ///< whether the thread is busy
  std::deque<std::function<void()>> m_tasks;
  bool m_busy = false;
  std::jthread m_thread; ///< last: joined before everything it uses goes
};

} // namespace reckon
