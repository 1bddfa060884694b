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
      0; ///< from its own readiness until the last rank was ready, without communication
  double cpu_seconds = 0; ///< CPU time of the process in one iteration, user and system
  bool operator==(const RankReport&) const = default;
};

/// Predicted beside measured for one part of the work.
struct StageReport {
  std::string name; ///< a Term's name, or "total"
  double predicted_seconds = 0;
  std::optional<double> measured_seconds; ///< absent when this run cannot separate it
  std::string how;                        ///< how it was measured
  bool operator==(const StageReport&) const = default;
};

struct Verification {
  bool ok = false;
  std::uint64_t checked_bytes = 0;
  std::uint64_t wrong_elements = 0;
  std::string first_error;             ///< "rank 3, part 17, offset 4096: expected 12, got 9"
  std::optional<double> max_error{};   ///< fixed point: greatest distance from the exact sum
  std::optional<double> error_bound{}; ///< error that equation 22 allows
  std::optional<double> wire_error{};  ///< error that equation 22a allows, of the magnitudes' sum
  bool operator==(const Verification&) const = default;
};

/// Parameters that evolved, in plans with an optimizer's step.
struct ParametersReport {
  std::string digest;      ///< "sha256:..." of all parameters in the gradient's order
  std::uint64_t steps = 0; ///< steps made in total
  std::optional<std::uint64_t> resumed_from_step{}; ///< steps of the resumed checkpoint
  bool operator==(const ParametersReport&) const = default;
};

/// Checkpoints saved during the iterations. Medians of iterations, in seconds; absent without
/// iterations of the kind.
struct CheckpointsReport {
  std::uint64_t every_steps = 0;
  std::uint64_t complete = 0;
  std::uint64_t skipped = 0; ///< due while the one before was being written
  std::uint64_t failed = 0;
  std::uint64_t bytes = 0;                   ///< bytes of one checkpoint, all ranks together
  std::optional<double> predicted_seconds{}; ///< additional time of an iteration that saves
  std::optional<double> saving_seconds{};    ///< an iteration that saved
  std::optional<double> writing_seconds{};   ///< one while a checkpoint was being written
  std::optional<double> usual_seconds{};     ///< one of the others
  std::optional<double> write_seconds{};     ///< until every rank's part was on disk
  std::string first_failure;
  bool operator==(const CheckpointsReport&) const = default;
};

/// Emulated links instead of the machine's own.
struct Emulation {
  DocumentLink profile;          ///< profile of the emulated links
  std::uint64_t writes = 0;      ///< over all ranks and iterations, with the warm-up
  std::uint64_t late_writes = 0; ///< this machine took longer for them than the emulated one
  double worst_late_seconds = 0; ///< largest lateness
  bool operator==(const Emulation&) const = default;
};

/// Writes from one machine to another whose time changed against the profile.
struct PairRateReport {
  std::string from, to;
  std::uint64_t bytes = 0; ///< of one write
  double before_bytes_per_second = 0, after_bytes_per_second = 0;
  bool operator==(const PairRateReport&) const = default;
};

/// A plan that replaced another one in the middle of a run.
struct ReplanReport {
  DocumentLink plan, profile;       ///< the new plan and the profile that it was made from
  std::vector<std::string> changes; ///< differences, a line each
  /// Predicted time of an iteration, both with the new profile.
  double running_predicted_seconds = 0, predicted_seconds = 0;
  /// Medians of iterations: with the plan before, over the later half since the last pause; and all
  /// with the new one, absent when the run ended first.
  std::optional<double> before_seconds{}, after_seconds{};
  std::optional<double> gain{};          ///< 1 - after_seconds / before_seconds
  std::vector<double> iteration_seconds; ///< with the new plan, without the warm-up
  bool operator==(const ReplanReport&) const = default;
};

/// A pause between two iterations that measured the links.
struct PauseReport {
  std::uint64_t after_iterations = 0; ///< counted ones, of the whole run
  double measuring_seconds = 0;
  double planning_seconds = 0; ///< 0: nothing had changed
  std::vector<PairRateReport> pairs;
  std::vector<std::string> ports; ///< machines whose whole port had changed
  std::string verdict;            ///< the decision
  std::optional<ReplanReport> replan{};
  bool operator==(const PauseReport&) const = default;
};

/// Repeated measurements of links during a run, and the plans that followed.
struct ReprofilingReport {
  std::uint64_t every_iterations = 0;
  std::vector<std::uint64_t> write_bytes; ///< sizes of the writes that are measured
  std::vector<PauseReport> pauses;
  bool operator==(const ReprofilingReport&) const = default;
};

/// A station of a simulated network: a port, a link, the way between two machines.
struct SimulatedStation {
  std::string name;
  std::uint64_t bytes = 0; ///< of the plan, in one iteration
  double bytes_per_second = 0;
  double busy = 0; ///< fraction of the iteration in which it is busy, 0 to 1
  bool operator==(const SimulatedStation&) const = default;
};

/// The plan was not executed but played on a model of its links.
struct Simulation {
  DocumentLink profile; ///< profile of the simulated links
  std::string engine;   ///< "SimGrid 3.32.0", "equal shares"
  std::map<std::string, std::string> settings;
  std::uint64_t ops = 0, flows = 0;
  std::uint64_t merged_parts = 1; ///< number of the plan's parts that were played as one
  double coarsening_error = 0;    ///< expected error of the merging, as a fraction of the time
  std::vector<std::string> scenarios{};        ///< changes against the plan's conditions, in words
  std::optional<double> undisturbed_seconds{}; ///< the same without the scenarios
  std::vector<SimulatedStation> stations{};    ///< the busiest, busiest first
  bool operator==(const Simulation&) const = default;
};

/// The kind of a slow place.
enum class SlowKind : std::uint8_t {
  port,       ///< a rank's port, both ways
  sending,    ///< a rank's port, sending
  receiving,  ///< a rank's port, receiving
  pair,       ///< the way from one rank to another
  station,    ///< a station of the network that several ranks use
  every_port, ///< all stations alike
  processors, ///< a rank's sums, copies and steps; inside one machine its writes too
  passes,     ///< a rank's passes
  delay,      ///< all writes from or to a rank
};
/// "every_port".
[[nodiscard]] std::string_view name_of(SlowKind kind);

/// A place that was slower than in the profile.
struct SlowPlaceReport {
  SlowKind kind = SlowKind::port;
  std::string name;                         ///< "w2's port"
  std::vector<std::uint64_t> ranks;         ///< ranks of the place; empty: all
  double factor = 1;                        ///< fraction of its rate that was left; for a delay 1
  std::optional<double> delay_seconds{};    ///< for a delay: the additional time of each write
  std::optional<double> bytes_per_second{}; ///< its rate in the profile; absent for passes and sums
  bool operator==(const SlowPlaceReport&) const = default;
};

/// Why iterations took longer than predicted: the places whose slowness, in another play of the
/// plan, reproduces the ranks' observed times.
struct Diagnosis {
  std::string verdict; ///< in words
  std::vector<SlowPlaceReport>
      places;                   ///< the one that explains most first; empty: no place explains it
  double planned_seconds = 0;   ///< played with the profile's rates
  double explained_seconds = 0; ///< played with the slow places
  double measured_seconds = 0;  ///< the examined iteration
  std::optional<double> new_plan_seconds{}; ///< predicted time of a plan that knows them
  std::vector<std::string> next;            ///< next commands
  bool operator==(const Diagnosis&) const = default;
};

/// The speed of a run's machine: what an iteration of the plan's rehearsal took.
struct MachineNow {
  double probed_seconds = 0;                    ///< when the machine was probed
  double before_seconds = 0, after_seconds = 0; ///< the run
  double predicted_seconds = 0;                 ///< the plan's prediction at the speed meanwhile
  double error = 0;                             ///< measured p50 over that, minus 1
  bool changed = false; ///< the rehearsals took longer, or less, than any when it was probed
  bool operator==(const MachineNow&) const = default;
};

/// The result of executing or simulating a plan.
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
  std::string cause; ///< the term of the prediction with the largest error, and the reason
  /// The run's differences from the plan's conditions: its machine, transport or machines. Empty:
  /// no difference.
  std::string other_links{};
  bool disturbed = false; ///< other programs had so much of the processors that it is late
  std::optional<MachineNow> machine_now{}; ///< for a plan with a rehearsal
  std::optional<Diagnosis> diagnosis{};    ///< absent: as predicted, or unknown
  std::optional<Emulation> emulation{};    ///< absent: real links
  std::optional<Simulation> simulation{};  ///< absent: executed
  /// Whether the prediction is for the links and ranks of this run: not in a run over others, nor
  /// in a simulation of others.
  [[nodiscard]] bool as_planned() const {
    return other_links.empty() && (!simulation || (simulation->scenarios.empty() &&
                                                   simulation->profile.digest == profile.digest));
  }
  /// Whether it took longer than the predicted range, by so much that the cause is worth looking
  /// for.
  [[nodiscard]] bool late() const {
    constexpr double k_worth_looking = 0.05;
    return p50_seconds > prediction.hi_seconds && error > k_worth_looking;
  }
  std::vector<StageReport> stages;
  std::vector<RankReport> ranks;
  Verification verification;
  std::optional<ParametersReport> parameters;
  std::optional<CheckpointsReport> checkpoints;
  /// With it, all other figures except the verification describe the first plan.
  std::optional<ReprofilingReport> reprofiling;
  bool operator==(const Report&) const = default;
};

} // namespace reckon
