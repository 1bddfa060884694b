// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"

namespace reckon {

/// One rank in one run: bytes of one iteration, seconds as medians over the iterations.
struct RankReport {
  std::string host;
  std::uint64_t egress_bytes = 0, ingress_bytes = 0;
  double busy_seconds = 0;   ///< summing and posting
  double reduce_seconds = 0; ///< part of busy_seconds
  double wait_seconds = 0;   ///< nothing was ready
  double total_seconds = 0;  ///< this rank's own start to its own end
  double peer_wait_seconds =
      0; ///< from its own readiness until the last rank was ready too: not communication
  double cpu_seconds = 0; ///< CPU time of the process in one iteration, user and system
  bool operator==(const RankReport&) const = default;
};

/// Predicted beside measured for one part of the work.
struct StageReport {
  std::string name; ///< a Term's name, or "total"
  double predicted_seconds = 0;
  std::optional<double> measured_seconds; ///< absent when this run cannot tell it apart
  std::string how;                        ///< how it was measured
  bool operator==(const StageReport&) const = default;
};

struct Verification {
  bool ok = false;
  std::uint64_t checked_bytes = 0;
  std::uint64_t wrong_elements = 0;
  std::string first_error;             ///< "rank 3, part 17, offset 4096: expected 12, got 9"
  std::optional<double> max_error{};   ///< fixed point: greatest distance from the exact sum
  std::optional<double> error_bound{}; ///< and what equation 22 allows
  bool operator==(const Verification&) const = default;
};

/// Parameters that evolved, in plans with an optimizer's step.
struct ParametersReport {
  std::string digest;      ///< "sha256:..." of all of them in the gradient's order
  std::uint64_t steps = 0; ///< made in the end
  std::optional<std::uint64_t>
      resumed_from_step{}; ///< of the checkpoint that this run went on from
  bool operator==(const ParametersReport&) const = default;
};

/// Checkpoints that were saved while iterations went on. Of iterations the medians, in seconds;
/// absent where there was none of the kind.
struct CheckpointsReport {
  std::uint64_t every_steps = 0;
  std::uint64_t complete = 0;
  std::uint64_t skipped = 0; ///< due while the one before was being written
  std::uint64_t failed = 0;
  std::uint64_t bytes = 0;                   ///< of one, all ranks together
  std::optional<double> predicted_seconds{}; ///< that an iteration takes longer which saves
  std::optional<double> saving_seconds{};    ///< an iteration that saved
  std::optional<double> writing_seconds{};   ///< one while a checkpoint was being written
  std::optional<double> usual_seconds{};     ///< one of the others
  std::optional<double> write_seconds{};     ///< until every rank's part was on disk
  std::string first_failure;
  bool operator==(const CheckpointsReport&) const = default;
};

/// The links were not those of the machine that ran it but emulated.
struct Emulation {
  DocumentLink profile;          ///< whose links
  std::uint64_t writes = 0;      ///< of all ranks and iterations, to warm up included
  std::uint64_t late_writes = 0; ///< this machine took longer for them than the emulated one
  double worst_late_seconds = 0; ///< of those
  bool operator==(const Emulation&) const = default;
};

/// Writes from one machine to another that take longer or shorter than the profile had it.
struct PairRateReport {
  std::string from, to;
  std::uint64_t bytes = 0; ///< of one write
  double before_bytes_per_second = 0, after_bytes_per_second = 0;
  bool operator==(const PairRateReport&) const = default;
};

/// A plan that took the place of another one in the middle of a run.
struct ReplanReport {
  DocumentLink plan, profile;       ///< the new plan and the profile that it was made from
  std::vector<std::string> changes; ///< what differs, a line each
  /// Of an iteration, both with the new profile.
  double running_predicted_seconds = 0, predicted_seconds = 0;
  /// Medians of iterations: with the plan before, the later half of those since the last pause; and
  /// all with the new one, absent when the run ended first.
  std::optional<double> before_seconds{}, after_seconds{};
  std::optional<double> gain{};          ///< 1 - after_seconds / before_seconds
  std::vector<double> iteration_seconds; ///< with the new plan, without the warm-up
  bool operator==(const ReplanReport&) const = default;
};

/// A pause between two iterations in which the links were measured.
struct PauseReport {
  std::uint64_t after_iterations = 0; ///< counted ones, of the whole run
  double measuring_seconds = 0;
  double planning_seconds = 0; ///< 0: nothing had changed
  std::vector<PairRateReport> pairs;
  std::vector<std::string> ports; ///< machines whose whole port had changed
  std::string verdict;            ///< what came of it
  std::optional<ReplanReport> replan{};
  bool operator==(const PauseReport&) const = default;
};

/// Links that are measured again while a run goes on, and plans that follow them.
struct ReprofilingReport {
  std::uint64_t every_iterations = 0;
  std::vector<std::uint64_t> write_bytes; ///< sizes of the writes that are measured
  std::vector<PauseReport> pauses;
  bool operator==(const ReprofilingReport&) const = default;
};

/// A station of a simulated network: a port, a link, what lies between two machines.
struct SimulatedStation {
  std::string name;
  std::uint64_t bytes = 0; ///< of the plan, in one iteration
  double bytes_per_second = 0;
  double busy = 0; ///< part of the iteration that they take there, 0 to 1
  bool operator==(const SimulatedStation&) const = default;
};

/// The plan was not executed but played on a model of its links.
struct Simulation {
  DocumentLink profile; ///< whose links
  std::string engine;   ///< "SimGrid 3.32.0", "equal shares"
  std::map<std::string, std::string> settings;
  std::uint64_t ops = 0, flows = 0;
  std::uint64_t merged_parts = 1;       ///< so many of the plan's parts were played as one
  double coarsening_error = 0;          ///< what that is expected to add, as a part of the time
  std::vector<std::string> scenarios{}; ///< what was different from the plan, in words
  std::optional<double> undisturbed_seconds{}; ///< the same without the scenarios
  std::vector<SimulatedStation> stations{};    ///< the busiest, busiest first
  bool operator==(const Simulation&) const = default;
};

/// What was slow.
enum class SlowKind : std::uint8_t {
  port,       ///< of a rank, both ways
  sending,    ///< what leaves a rank
  receiving,  ///< what comes to a rank
  pair,       ///< from one rank to another
  station,    ///< of the network, that several ranks use
  every_port, ///< all stations alike
  processors, ///< of a rank: its sums, copies and steps; inside one machine its writes too
  passes,     ///< of a rank
  delay,      ///< of all that leaves a rank or comes to it
};
/// "every_port".
[[nodiscard]] std::string_view name_of(SlowKind kind);

/// A place that was slower than the profile says.
struct SlowPlaceReport {
  SlowKind kind = SlowKind::port;
  std::string name;                         ///< "w2's port"
  std::vector<std::uint64_t> ranks;         ///< that it belongs to; none: to all
  double factor = 1;                        ///< that it kept of its rate; of a delay 1
  std::optional<double> delay_seconds{};    ///< that each write took longer; of a delay
  std::optional<double> bytes_per_second{}; ///< its rate by the profile; absent: of passes and sums
  bool operator==(const SlowPlaceReport&) const = default;
};

/// Why iterations took longer than predicted: the places whose slowness gives, when the plan is
/// played again with it, what the ranks were seen to do.
struct Diagnosis {
  std::string verdict;                      ///< in words
  std::vector<SlowPlaceReport> places;      ///< what explains most first; none: nothing does
  double planned_seconds = 0;               ///< the play with all as in the profile
  double explained_seconds = 0;             ///< and with the places as slow as they were
  double measured_seconds = 0;              ///< the iteration that was looked at
  std::optional<double> new_plan_seconds{}; ///< predicted of a plan that knows them
  std::vector<std::string> next;            ///< commands to go on with
  bool operator==(const Diagnosis&) const = default;
};

/// How fast the machine of a run is now, measured as MachineRates before it and after.
struct MachineNow {
  double sum_bytes_per_second = 0, copy_bytes_per_second = 0;
  double profile_sum_bytes_per_second = 0, profile_copy_bytes_per_second = 0;
  double predicted_seconds = 0; ///< the plan's prediction at these rates
  double error = 0;             ///< measured p50 over that, minus 1
  bool operator==(const MachineNow&) const = default;
};

/// What happened when a plan was executed or simulated.
struct Report {
  std::string kind = "run"; ///< "simulation": with `simulation`, and nothing was verified
  DocumentLink plan, profile, workload;
  std::map<std::string, std::string>
      context; ///< host, transport, ranks, lanes, version, measured at, ...
  std::string strategy;
  std::string transport;
  std::vector<double>
      iteration_seconds; ///< without the warm-up: RankSample::begin_ns to the last completion
  std::uint64_t warm_up_iterations = 0;
  double min_seconds = 0, p50_seconds = 0, p99_seconds = 0, spread = 0;
  Prediction prediction;
  double error = 0;              ///< measured p50 / predicted mid - 1
  double goodput_over_bound = 0; ///< bound / measured p50, in [0, 1] unless the profile is stale
  double tolerance = 0;
  bool within_tolerance = false;
  std::string cause; ///< which term of the prediction missed most, and why
  /// What of a run was not as the plan predicts: its machine, transport or machines. Empty:
  /// nothing.
  std::string other_links{};
  std::optional<MachineNow> machine_now{}; ///< of a plan with machine_rates
  std::optional<Diagnosis> diagnosis{};    ///< absent: as predicted, or nobody could tell
  std::optional<Emulation> emulation{};    ///< absent: measured as it is
  std::optional<Simulation> simulation{};  ///< absent: executed
  /// Whether the prediction is for the links and ranks that the plan met: not in a run over others,
  /// nor in a simulation of others.
  [[nodiscard]] bool as_planned() const {
    return other_links.empty() && (!simulation || (simulation->scenarios.empty() &&
                                                   simulation->profile.digest == profile.digest));
  }
  std::vector<StageReport> stages;
  std::vector<RankReport> ranks;
  Verification verification;
  std::optional<ParametersReport> parameters;
  std::optional<CheckpointsReport> checkpoints;
  /// With it, all other figures but the verification are of the plan that the run began with.
  std::optional<ReprofilingReport> reprofiling;
  bool operator==(const Report&) const = default;
};

} // namespace reckon
