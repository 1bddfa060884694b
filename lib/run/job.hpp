// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "documents/plan.hpp"
#include "documents/report.hpp"
#include "launch/rendezvous.hpp"
#include "movers/habits.hpp"
#include "movers/mover.hpp"
#include "run/checkpoints.hpp"
#include "run/pass_crew.hpp"
#include "run/sample.hpp"
#include "run/values.hpp"
#include "schedule/schedule.hpp"
#include "schedule/timeline.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// The schedules of a job. All use the same lanes and the same buffers, of which some schedules
/// have more at the end.
struct JobSchedules {
  Schedule usual;                 ///< one iteration
  std::optional<Schedule> saving; ///< with_snapshot(usual): to save checkpoints or to resume
  /// restoring(*saving): to resume; carrying() from the schedule before: to take over.
  std::optional<Schedule> restoring;
};

/// A rank's part of a job's parameters and optimizer states when another plan takes over.
struct Carried {
  std::uint64_t steps = 0; ///< steps made so far
  std::string bytes;       ///< at RankProgram::saved of JobSchedules::restoring, in that order
};

/// Where training is saved to and resumed from.
struct CheckpointOptions {
  std::string save_folder;   ///< empty: no checkpoints
  std::uint64_t every = 10;  ///< steps between checkpoints
  std::string resume_folder; ///< empty: from the start
  std::string plan;          ///< digest of the checkpoints' plan
};

struct RunOptions {
  /// A name in available_transports(): moves all bytes, or, with `inside_transport`, those between
  /// machines.
  std::string transport;
  std::string
      inside_transport; ///< moves bytes between ranks of one machine; empty: `transport` does
  std::vector<std::size_t> machines; ///< with `inside_transport`: number of each rank's machine
  /// The number of all steps from the start, with the warm-up and the steps before a resumed
  /// checkpoint; absent: until the median is stable, within `budget`.
  std::optional<std::uint32_t> iterations;
  std::uint32_t warm_up =
      2; ///< iterations that are verified but not counted (the first are slower)
  /// Time of all iterations, from the first one's gradients to the last one's verification; at
  /// least three are counted.
  Seconds budget{10};
  Seconds limit{60}; ///< the longest time of a step of the job; after that it counts as hung
  Habits habits;     ///< not all of them: an ablation
  bool checksums =
      false; ///< of all that crosses a network: with expect_arrivals() of the schedules
  /// The kind of work of the passes; absent: their time passes.
  std::optional<PassCompute> compute{};
  std::string stragglers; ///< the stretched ranks as given: "1=2x"; for the report
  /// other_machine(): the plan's rates are from a different machine; for the report.
  std::string other_machine;
  /// By lane of this rank: the processor of its thread, if this rank has its machine to itself and
  /// may use that; -1: any. Empty: any for all.
  std::vector<int> lane_cpus;
  int local_rank = 0, local_size = 1; ///< among the ranks on this machine: decides about pinning
  std::string pci_address; ///< transport cuda: address of this rank's GPU; empty: by the local rank
  bool host_memory = false; ///< transport cuda: this rank's memory is the host's, not a GPU's
  std::function<std::unique_ptr<Mover>()> mover{}; ///< instead of the transport's: a test's own
  CheckpointOptions checkpoints;
  /// The place for this rank's gradient, of its size, if the transport can reach it; empty: in the
  /// transport's memory.
  std::span<std::byte> gradient{};
  const Carried* carried =
      nullptr; ///< state to take over; null: from the start, or from a checkpoint
  /// Called with the host of each rank once the ranks know each other.
  std::function<void(const std::vector<std::string>& hosts)> introduced{};
  /// Called at rank 0 while it repeats the steps before this run, to compare the result with the
  /// checkpoint: `done` of `all` are made.
  std::function<void(std::uint64_t done, std::uint64_t all)> made_again{};
  /// Called with this rank's buffers when the last iteration is over.
  std::function<void(Views views, std::uint64_t steps)> at_end{};
  /// Called at every rank between two iterations, after each `every` counted ones (0: never), when
  /// no traffic of the job is under way. Gets whether another iteration follows, and returns it;
  /// both count at rank 0 only.
  struct Pause {
    std::uint32_t every = 0;
    std::function<bool(bool go)> call;
  } pause{};
};

/// Additional work in an iteration.
enum class IterationKind : std::uint8_t {
  usual,
  saving,  ///< it made the copies for a checkpoint
  writing, ///< when it began, a checkpoint was still being written
};

/// The results that rank 0 has at the end, and each rank of itself.
struct JobResult {
  /// Begin and end of each op of this rank, since the common start, in the counted iteration
  /// without a checkpoint that took about the median.
  RankTimeline timeline;
  std::vector<std::vector<RankSample>> iterations; ///< [iteration][rank], without the warm-up
  std::vector<IterationKind> kinds;                ///< kinds of these iterations
  std::uint32_t warm_up = 0;                       ///< iterations before them
  std::optional<std::uint64_t> resumed_from;       ///< steps made before this run
  std::uint64_t steps = 0;                         ///< made in the end
  std::string
      parameters_digest; ///< digest of all parameters in the gradient's order; empty: no parameters
  CheckpointCounts checkpoints;
  std::vector<RankVerification> verification; ///< by rank, over all iterations
  std::optional<double> error_bound;          ///< for sums in fixed point
  std::vector<std::string> hosts;             ///< by rank
  Seconds passes{0}; ///< of the rank with the longest passes, where they only pass
  std::map<std::string, std::string> context;
  std::int64_t clock_uncertainty_ns = 0; ///< greatest of all ranks
};

/// Takes part in the job as one rank: registers, connects, then iterates: fill the gradient with
/// known values, wait for everybody, run the lanes (timed), wait for everybody, check every byte. A
/// rank that resumes from a checkpoint first makes the same steps by itself, and compares. At the
/// end disconnects, meeting the others once more where the mover needs that. The result is complete
/// at rank 0 only. `progress` is called at rank 0 after each iteration with the number done and the
/// last one's seconds. Throws PeerError when another rank is the cause, Error otherwise; the others
/// have then been told.
[[nodiscard]] JobResult run_rank(Rendezvous& rendezvous, const JobSchedules& schedules,
                                 const RunOptions& options,
                                 const std::function<void(std::size_t, double)>& progress);

} // namespace reckon
