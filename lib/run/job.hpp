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

/// What a job runs. All of these are over the same buffers, of which some schedules have more at
/// the end, and the same lanes.
struct JobSchedules {
  Schedule usual;                 ///< of an iteration
  std::optional<Schedule> saving; ///< with_snapshot(usual): to save checkpoints or to resume
  /// restoring(*saving): to resume; carrying() from the schedule before: to take over.
  std::optional<Schedule> restoring;
};

/// What a rank has of a job's parameters and optimizer states when another plan takes over.
struct Carried {
  std::uint64_t steps = 0; ///< made so far
  std::string bytes;       ///< at RankProgram::saved of JobSchedules::restoring, in that order
};

/// Where training is saved and gone on with.
struct CheckpointOptions {
  std::string save_folder;   ///< empty: nothing is saved
  std::uint64_t every = 10;  ///< steps between checkpoints
  std::string resume_folder; ///< empty: from the start
  std::string plan;          ///< digest of the plan that they are of
};

struct RunOptions {
  /// A name of available_transports(): moves all bytes, or, with `inside_transport`, those between
  /// machines.
  std::string transport;
  std::string inside_transport;      ///< moves those between ranks of one machine; empty: none does
  std::vector<std::size_t> machines; ///< with `inside_transport`: number of each rank's machine
  /// With the warm-up, all steps from the start, those before a checkpoint that is resumed from
  /// too; none: until the median is stable, within `budget`.
  std::optional<std::uint32_t> iterations;
  std::uint32_t warm_up =
      2; ///< iterations that are verified but not counted (the first are slower)
  /// Of all iterations, from the first one's gradients to the last one's verification; at least
  /// three are counted.
  Seconds budget{10};
  Seconds limit{60}; ///< how long a step of the job may take before it counts as hung
  Habits habits;     ///< not all of them: an ablation
  /// Passes are work of this kind; nothing: their time passes.
  std::optional<PassCompute> compute{};
  std::string stragglers; ///< which ranks' passes were stretched, as asked: "1=2x"; for the report
  /// other_machine(): the plan's rates are not this machine's; for the report.
  std::string other_machine;
  /// Of each of this rank's lanes: the processor that its thread stays on, if this rank has its
  /// machine to itself and may use that; -1: any. Empty: any for all.
  std::vector<int> lane_cpus;
  int local_rank = 0, local_size = 1; ///< among the ranks on this machine: decides about pinning
  std::string pci_address;  ///< transport cuda: of this rank's GPU; empty: by the local rank
  bool host_memory = false; ///< transport cuda: this rank's memory is the host's, not a GPU's
  std::function<std::unique_ptr<Mover>()> mover{}; ///< instead of the transport's: a test's own
  std::optional<MachineRates> machine_rates{}; ///< to be measured again, where ranks share a host
  CheckpointOptions checkpoints;
  /// Where this rank's gradient is to lie, of that size, if the transport can reach it; empty: in
  /// memory of the transport's.
  std::span<std::byte> gradient{};
  const Carried* carried = nullptr; ///< to take over; null: from the start, or from a checkpoint
  /// Called with the host of each rank once the ranks know each other.
  std::function<void(const std::vector<std::string>& hosts)> introduced{};
  /// Called at rank 0 while it makes the steps before this run again, to compare what they give
  /// with what it goes on from: `done` of `all` are made.
  std::function<void(std::uint64_t done, std::uint64_t all)> made_again{};
  /// Called with this rank's buffers when the last iteration is over.
  std::function<void(Views views, std::uint64_t steps)> at_end{};
  /// Called at every rank between two iterations, after each `every` counted ones (0: never), when
  /// nothing of the job is under way. Gets whether another iteration is to come, and says so
  /// itself; both count at rank 0 only.
  struct Pause {
    std::uint32_t every = 0;
    std::function<bool(bool go)> call;
  } pause{};
};

/// What besides its ordinary work happened in an iteration.
enum class IterationKind : std::uint8_t {
  usual,
  saving,  ///< it made the copies for a checkpoint
  writing, ///< when it began, a checkpoint was still being written
};

/// What rank 0 knows at the end, and each rank of itself.
struct JobResult {
  /// When each op of this rank began and ended, since all were to begin, in the iteration
  /// that took about the median of those that count and save nothing.
  RankTimeline timeline;
  std::vector<std::vector<RankSample>> iterations; ///< [iteration][rank], without the warm-up
  std::vector<IterationKind> kinds;                ///< of these iterations
  std::uint32_t warm_up = 0;                       ///< iterations before them
  std::optional<std::uint64_t> resumed_from;       ///< steps made before this run
  std::uint64_t steps = 0;                         ///< made in the end
  std::string
      parameters_digest; ///< of all parameters in the gradient's order; empty: there are none
  CheckpointCounts checkpoints;
  std::vector<RankVerification> verification; ///< by rank, all iterations together
  std::optional<double> error_bound;          ///< of sums in fixed point
  std::optional<MachineNow> machine_now;      ///< its rates; of RunOptions::machine_rates
  std::vector<std::string> hosts;             ///< by rank
  Seconds passes{0}; ///< of the rank whose take longest, where they only pass
  std::map<std::string, std::string> context;
  std::int64_t clock_uncertainty_ns = 0; ///< greatest of all ranks
};

/// Takes part in the job as one rank: registers, connects, then iterates: fill the gradient with
/// known values, wait for everybody, run the lanes (timed), wait for everybody, check every byte.
/// A rank that goes on from a checkpoint first makes the same steps by itself, and compares. At the
/// end disconnects, meeting the others once more where the mover needs that. The result is
/// complete at rank 0 only. `progress` is called at rank 0 after each iteration with the number
/// done and the last one's seconds. Throws PeerError when another rank is the cause, Error
/// otherwise; the others have then been told.
[[nodiscard]] JobResult run_rank(Rendezvous& rendezvous, const JobSchedules& schedules,
                                 const RunOptions& options,
                                 const std::function<void(std::size_t, double)>& progress);

} // namespace reckon
