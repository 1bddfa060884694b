// SPDX-License-Identifier: Apache-2.0
#include "run/report.hpp"

#include "core/clock.hpp"
#include "core/units.hpp"
#include "core/version.hpp"
#include "documents/own_machines.hpp"
#include "stats/speeds.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

/// Why a stage between machines has no time of its own.
constexpr std::string_view k_only_in_total =
    "only in the total: a rank that waits does not know whether for a busy link or for the first "
    "parts";

/// Of one rank: median over the iterations, in seconds, of a member of its sample or of what a
/// function gives of that.
template <class F>
double over_iterations(const JobResult& result, std::size_t rank, F ns) {
  std::vector<double> all;
  for (const std::vector<RankSample>& iteration : result.iterations) {
    all.push_back(seconds(std::invoke(ns, iteration[rank])));
  }
  return median(std::move(all));
}

void add_ranks(Report& report, const Plan& plan, const JobResult& result) {
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    RankReport rank;
    rank.host = result.hosts[r];
    rank.egress_bytes = plan.ranks[r].egress_bytes;
    rank.ingress_bytes = plan.ranks[r].ingress_bytes;
    rank.reduce_seconds = over_iterations(result, r, &RankSample::reduce_ns);
    rank.wait_seconds = over_iterations(result, r, &RankSample::wait_ns);
    rank.busy_seconds =
        over_iterations(result, r, [](const RankSample& s) { return s.lane_ns - s.wait_ns; });
    rank.cpu_seconds = over_iterations(result, r, &RankSample::cpu_ns);
    rank.total_seconds =
        over_iterations(result, r, [](const RankSample& s) { return s.end_ns - s.start_ns; });
    std::vector<double> waits;
    for (const std::vector<RankSample>& iteration : result.iterations) {
      waits.push_back(seconds(last_ready_ns(iteration) - iteration[r].ready_ns));
    }
    rank.peer_wait_seconds = median(std::move(waits));
    report.ranks.push_back(rank);
  }
}

/// Of one iteration, median.
double update_seconds(const JobResult& result, bool one_machine, unsigned cores) {
  double all = 0, longest = 0, busy = 0;
  for (std::size_t r = 0; r < result.hosts.size(); ++r) {
    const double mine = over_iterations(result, r, &RankSample::update_ns);
    all += mine;
    longest = std::max(longest, mine);
    busy += mine > 0 ? 1 : 0;
  }
  return one_machine ? all / std::max(1.0, std::min<double>(cores, busy)) : longest;
}

/// What the passes of the rank that computes longest took, median; nothing: their time only passed.
std::optional<double> computed_seconds(const JobResult& result) {
  double longest = 0;
  for (std::size_t r = 0; r < result.hosts.size(); ++r) {
    longest = std::max(longest, over_iterations(result, r, &RankSample::compute_ns));
  }
  return longest > 0 ? std::optional(longest) : std::nullopt;
}

/// Splits the measured time as the prediction is split, as far as the measurement can tell.
void add_stages(Report& report, const JobResult& result, bool one_machine, unsigned cores) {
  const Prediction& p = report.prediction;
  double sum = 0, longest = 0, busy_ranks = 0;
  for (const RankReport& r : report.ranks) {
    sum += r.reduce_seconds;
    longest = std::max(longest, r.reduce_seconds);
    busy_ranks += r.busy_seconds > 0 ? 1 : 0;
  }
  const double parallel = std::max(1.0, std::min<double>(cores, busy_ranks));
  const double reduction = one_machine ? sum / parallel : longest;
  const double update = update_seconds(result, one_machine, cores);
  const std::optional<double> computed = computed_seconds(result);
  const double passes = computed.value_or(result.passes.count());
  for (const Term& t : p.terms) {
    StageReport stage{t.name, t.seconds, std::nullopt, std::string(k_only_in_total)};
    if (t.name == "transport" && one_machine) {
      // Inside a machine sums may be a part of what the links and memories carry.
      stage.name = "transport_and_fill";
      stage.predicted_seconds += seconds_of(p, "fill").value_or(0);
      stage.measured_seconds =
          std::max(0.0, report.p50_seconds - (seconds_of(p, "reduction") ? reduction : 0) -
                            (seconds_of(p, "update") ? update : 0));
      stage.how = "the rest of the iteration: writing, polling, waiting, starting";
    } else if (t.name == "fill" && one_machine) {
      continue; // counted with the transport, which it cannot be told from
    } else if (t.name == "reduction") {
      stage.measured_seconds = reduction;
      stage.how =
          one_machine
              ? fmt::format("time inside the summation kernels of all ranks / {} processors",
                            parallel)
              : "the rank that sums most; what overlaps with transport costs no time";
    } else if (t.name == "update") {
      stage.measured_seconds = update;
      stage.how = one_machine
                      ? "processor time of all ranks' steps / processors"
                      : "processor time of the rank that steps most; part of it may overlap";
    } else if (t.name == "passes") {
      stage.measured_seconds = passes;
      stage.how = computed ? "work of the busiest thread of the rank that computes longest"
                           : "played: these seconds pass whatever the links do";
    } else if (t.name == "exposed") {
      stage.measured_seconds = report.p50_seconds - passes;
      stage.how = "the traffic's addition to the passes";
    }
    report.stages.push_back(stage);
  }
  report.stages.push_back(
      {"total", p.mid_seconds, report.p50_seconds,
       "from when all can know that all are ready to the last completion, median"});
}

/// The plan's bound with passes as short as they were, if they were shorter than planned: each
/// second of theirs may be one of the iteration's.
double bound_of_passes(const Report& report) {
  double bound = report.prediction.bound_seconds;
  for (const StageReport& s : report.stages) {
    if (s.name == "passes" && s.measured_seconds) {
      bound -= std::clamp(s.predicted_seconds - *s.measured_seconds, 0.0, bound);
    }
  }
  return bound;
}

/// The stage whose miss is most of the whole miss and goes the same way. A stage that missed by
/// less cannot be why: much of it overlaps with the transport.
const StageReport* stage_that_missed(const Report& report, double miss) {
  const StageReport* worst = nullptr;
  double most = std::abs(miss) / 2;
  for (const StageReport& s : report.stages) {
    const double by = s.measured_seconds ? *s.measured_seconds - s.predicted_seconds : 0;
    if (s.name != "total" && by * miss > 0 && std::abs(by) >= most) {
      worst = &s;
      most = std::abs(by);
    }
  }
  return worst;
}

/// Share of a machine's processors that other programs used during the counted iterations, 0 or
/// more; 0 for ranks on several machines.
double others_share(const JobResult& result, unsigned cores) {
  if (std::set(result.hosts.begin(), result.hosts.end()).size() != 1 || result.hosts.size() < 2) {
    return 0; // not known of several machines
  }
  double busy = 0, ours = 0, wall = 0;
  for (const auto& iteration : result.iterations) {
    std::int64_t longest = 0, most_busy = 0;
    for (const RankSample& s : iteration) {
      ours += seconds(s.cpu_ns);
      longest = std::max(longest, s.end_ns - s.start_ns);
      most_busy = std::max(most_busy, s.machine_busy_ns);
    }
    wall += seconds(longest);
    busy += seconds(most_busy);
  }
  return wall > 0 ? std::max(0.0, (busy - ours) / (wall * cores)) : 0;
}

/// Whether other programs that used `others` of the processors explain a run that took longer than
/// its prediction: then no other measurement explains it.
bool disturbed(const Report& report, double others) {
  constexpr double k_much = 0.1;
  return others > k_much && (!report.within_tolerance || report.late()) && report.error > 0 &&
         report.p50_seconds > report.prediction.hi_seconds;
}

std::string rehearsal_text(const RehearsalPlan& rehearsal) {
  return fmt::format("{} by {} ranks{}", rehearsal.strategy, rehearsal.ranks,
                     rehearsal.in_place ? ", in place" : "");
}

/// Whether what was measured is in the predicted range, and the range says something.
bool in_range(const Report& report) {
  return report.p50_seconds >= report.prediction.lo_seconds &&
         report.p50_seconds <= report.prediction.hi_seconds &&
         !(report.prediction.range_is_wide() && report.within_tolerance);
}

std::string find_cause(const Report& report, bool one_machine, unsigned cores, double others) {
  const double measured = report.p50_seconds;
  const double predicted = report.prediction.mid_seconds;
  if (measured <= 0 || predicted <= 0) {
    return report.within_tolerance ? "nothing had to move" : "no time was predicted";
  }
  const double miss = measured - predicted;
  const std::string size = fmt::format("{:+.1f} %", 100 * report.error);
  const bool noisy = report.prediction.range_is_wide();
  if (in_range(report)) {
    return fmt::format(
        "{} ({})",
        noisy ? "the profile is too noisy to judge this" : "within the noise of the profile", size);
  }
  if (report.disturbed) {
    const double share = std::min(1.0, others);
    const double left = 1 - share; // to the run
    const bool enough = measured * left <= predicted * (1 + report.tolerance);
    return fmt::format("disturbed ({}): other programs had {:.0f} % of the processors{}; run it "
                       "again when they are done",
                       size, 100 * share,
                       enough ? ""
                              : fmt::format(", which explains {:+.0f} %; the rest is unexplained",
                                            100 * (1 / left - 1)));
  }
  if (const auto speeds = two_speeds(report.iteration_seconds)) {
    const Prediction& p = report.prediction;
    const auto as_predicted = [&](double s) { return p.lo_seconds <= s && s <= p.hi_seconds; };
    const bool fast = as_predicted(speeds->fast_seconds);
    if (fast || as_predicted(speeds->slow_seconds)) {
      return fmt::format(
          "two speeds ({}): the {} {:.0f} % of the iterations took {}, as predicted, "
          "the others {}",
          size, fast ? "fast" : "slow", 100 * (fast ? speeds->fast_share : 1 - speeds->fast_share),
          to_text(Seconds(fast ? speeds->fast_seconds : speeds->slow_seconds)),
          to_text(Seconds(fast ? speeds->slow_seconds : speeds->fast_seconds)));
    }
  }
  // A measured rate is good to a percent at best: what beats the bound by less says nothing.
  constexpr double k_bound_accuracy = 0.01;
  if (report.goodput_over_bound > 1 / (1 - k_bound_accuracy)) {
    return fmt::format("stale profile ({}): faster than the bound, so the links are better than "
                       "the profile says; probe again",
                       size);
  }
  if (report.within_tolerance && !report.late()) {
    return fmt::format("within the tolerance ({}); to see the cause, lower --tolerance", size);
  }
  // Imbalance: the longest rank against the mean, among those that move anything.
  double sum = 0, longest = 0, cpu = 0;
  std::size_t count = 0;
  for (const RankReport& r : report.ranks) {
    if (r.egress_bytes + r.ingress_bytes > 0) {
      sum += r.busy_seconds;
      longest = std::max(longest, r.busy_seconds);
      cpu += r.cpu_seconds;
      ++count;
    }
  }
  if (miss > 0 && one_machine) {
    const double processors = std::min<double>(cores, static_cast<double>(count));
    const double available = measured * processors;
    if (available - cpu > 0.5 * miss * processors) {
      return fmt::format("waiting ({}): the processors were idle for {:.0f} % of the iteration",
                         size, 100 * (1 - cpu / available));
    }
  }
  const double mean = sum / static_cast<double>(count);
  if (miss > 0 && !one_machine && count > 1 && longest - mean > 0.5 * miss) {
    return fmt::format("imbalance ({}): the busiest rank worked {} and the mean {}", size,
                       to_text(Seconds(longest)), to_text(Seconds(mean)));
  }
  if (const StageReport* const worst = stage_that_missed(report, miss)) {
    return fmt::format("{} ({}): predicted {}, measured {}", worst->name, size,
                       to_text(Seconds(worst->predicted_seconds)),
                       to_text(Seconds(*worst->measured_seconds)));
  }
  if (one_machine) { // transport is measured there: several stages missed a little each
    return fmt::format("unexplained ({}): no single stage missed by most of it", size);
  }
  return fmt::format("transport ({}): the links moved the bytes {} than the profile says; no rank "
                     "worked for more than {} of it",
                     size, miss > 0 ? "more slowly" : "faster", to_text(Seconds(longest)));
}

/// Of the iterations of one kind; nothing when there was none.
std::optional<double> median_of(const Report& report, const JobResult& result, IterationKind kind) {
  std::vector<double> all;
  for (std::size_t i = 0; i < result.kinds.size(); ++i) {
    if (result.kinds[i] == kind) {
      all.push_back(report.iteration_seconds[i]);
    }
  }
  return all.empty() ? std::nullopt : std::optional(median(std::move(all)));
}

void add_checkpoints(Report& report, const Plan& plan, const JobResult& result,
                     const CheckpointOptions& options) {
  if (!result.parameters_digest.empty()) {
    report.parameters = {result.parameters_digest, result.steps, result.resumed_from};
  }
  if (options.save_folder.empty()) {
    return;
  }
  const CheckpointCounts& counts = result.checkpoints;
  CheckpointsReport checkpoints;
  checkpoints.every_steps = options.every;
  checkpoints.complete = counts.complete;
  checkpoints.skipped = counts.skipped;
  checkpoints.failed = counts.failed;
  checkpoints.bytes = counts.bytes;
  checkpoints.first_failure = counts.first_failure;
  for (const Quantity& q : plan.quantities) {
    if (q.name == "checkpoint_seconds") {
      checkpoints.predicted_seconds = q.value;
    }
  }
  checkpoints.saving_seconds = median_of(report, result, IterationKind::saving);
  checkpoints.writing_seconds = median_of(report, result, IterationKind::writing);
  checkpoints.usual_seconds = median_of(report, result, IterationKind::usual);
  if (!counts.write_seconds.empty()) {
    checkpoints.write_seconds = median(counts.write_seconds);
  }
  report.checkpoints = checkpoints;
}

} // namespace

std::string trouble_of(const Report& report) {
  if (!report.verification.ok) {
    return fmt::format("{} elements are wrong; first: {}", report.verification.wrong_elements,
                       report.verification.first_error);
  }
  if (report.checkpoints && report.checkpoints->failed > 0) {
    return fmt::format("{} could not be saved; first: {}",
                       counted(report.checkpoints->failed, "checkpoint"),
                       report.checkpoints->first_failure);
  }
  return "";
}

std::vector<double> iteration_seconds(const JobResult& result) {
  std::vector<double> all;
  for (const std::vector<RankSample>& samples : result.iterations) {
    all.push_back(iteration_seconds(samples));
  }
  return all;
}

void add_measured_gains(ReprofilingReport& reprofiling,
                        const std::vector<std::vector<double>>& segments) {
  std::size_t segment = 0;
  for (PauseReport& pause : reprofiling.pauses) {
    if (!pause.replan) {
      continue;
    }
    ReplanReport& replan = *pause.replan;
    // What slowed down may have done so in the middle of the iterations since the last pause.
    const std::vector<double>& before = segments.at(segment);
    const std::size_t since = std::min<std::size_t>(reprofiling.every_iterations, before.size());
    replan.before_seconds =
        median({before.end() - static_cast<std::ptrdiff_t>((since + 1) / 2), before.end()});
    replan.iteration_seconds = segments.at(++segment);
    if (!replan.iteration_seconds.empty()) {
      replan.after_seconds = median(replan.iteration_seconds);
      replan.gain = 1 - *replan.after_seconds / *replan.before_seconds;
    }
  }
}

Report make_report(const Plan& plan, const DocumentLink& plan_link, const JobResult& result,
                   const RunOptions& options, double tolerance, unsigned cores) {
  Report report;
  report.plan = plan_link;
  report.profile = plan.profile;
  report.workload = plan.workload;
  report.strategy = plan.strategy;
  report.transport = options.transport;
  report.warm_up_iterations = result.warm_up;
  report.prediction = plan.prediction;
  report.tolerance = tolerance;
  report.context = result.context;
  report.context["tool"] = std::string("reckon ") + k_version;
  report.context["clock"] = fmt::format("CLOCK_MONOTONIC_RAW, ranks agree within {}",
                                        to_text(Seconds(seconds(result.clock_uncertainty_ns))));
  const std::set<std::string> hosts(result.hosts.begin(), result.hosts.end());
  report.context["hosts"] = fmt::format("{}", fmt::join(hosts, ", "));
  report.context["measured_at"] = utc_now();

  report.iteration_seconds = iteration_seconds(result);
  add_checkpoints(report, plan, result, options.checkpoints);
  const Summary summary = summarize(report.iteration_seconds);
  report.min_seconds = summary.min;
  report.p50_seconds = summary.p50;
  report.p99_seconds = summary.p99;
  report.spread = summary.spread;
  report.error =
      plan.prediction.mid_seconds > 0 ? report.p50_seconds / plan.prediction.mid_seconds - 1 : 0;
  // No time predicted for traffic that there is: whatever was measured, it was not predicted.
  const bool none_predicted = plan.prediction.mid_seconds <= 0 &&
                              std::any_of(plan.ranks.begin(), plan.ranks.end(),
                                          [](const PlanRank& r) { return r.egress_bytes > 0; });
  report.within_tolerance = !none_predicted && std::abs(report.error) <= tolerance;

  const bool one_machine = hosts.size() == 1 && plan.ranks.size() > 1;
  add_ranks(report, plan, result);
  add_stages(report, result, one_machine, cores);
  report.goodput_over_bound =
      report.p50_seconds > 0 ? bound_of_passes(report) / report.p50_seconds : 0;
  const double others = others_share(result, cores);
  report.disturbed = disturbed(report, others);
  if (one_machine) {
    report.context["other_programs"] =
        fmt::format("{:.0f} % of the processors", 100 * std::min(1.0, others));
  }
  if (plan.sums_in_place) {
    report.context["sums"] = "in place: bytes that leave a rank are read of it or written by it";
  }
  if (!options.inside_transport.empty()) {
    report.context["inside_machines"] = options.inside_transport;
  }
  const std::string without = without_text(options.habits);
  if (!without.empty()) {
    report.context["without"] =
        without + ": an ablation, for comparison with other runs of this plan only";
  }
  if (!options.stragglers.empty()) {
    report.context["stragglers"] = options.stragglers + ": slower than the plan says, as asked";
  }
  const std::string shared = shared_hosts(plan, result.hosts);
  report.other_links =
      !options.other_machine.empty() ? options.other_machine
      : options.transport != plan.transport && plan.transport != k_unspecified_transport
          ? fmt::format("it predicts {}, this ran over {}", plan.transport, options.transport)
      : shared.empty() ? ""
                       : fmt::format("it predicts ranks on machines of their own, here {}",
                                     one_machine ? "all shared " + result.hosts.front() : shared);
  report.cause =
      !without.empty()
          ? fmt::format(
                "an ablation ({:+.1f} %): the plan predicts {} with everything on, this ran "
                "over {} without {}",
                100 * report.error, plan.transport, options.transport, without)
      : !options.other_machine.empty()
          ? "another machine: the plan has the rates of its profile's, not of this one"
      : !report.other_links.empty() ? "other links: the plan was made for others than these"
      : !options.stragglers.empty() ? fmt::format("stragglers, as asked ({:+.1f} %): {}",
                                                  100 * report.error, options.stragglers)
                                    : find_cause(report, one_machine, cores, others);

  RankVerification all;
  for (std::size_t r = 0; r < result.verification.size(); ++r) {
    RankVerification rank = result.verification[r];
    if (!rank.first_error.empty()) {
      rank.first_error = fmt::format("rank {}, {}", r, rank.first_error);
    }
    all.add(rank);
  }
  report.verification = {.ok = all.wrong_elements == 0,
                         .checked_bytes = all.checked_bytes,
                         .wrong_elements = all.wrong_elements,
                         .first_error = all.first_error,
                         .error_bound = result.error_bound,
                         .wire_error = wire_error(plan)};
  if (result.error_bound) {
    report.verification.max_error = all.max_error;
  }
  return report;
}

void judge_at_speed_now(Report& report, const RehearsalPlan& rehearsal,
                        const std::vector<double>& before, const std::vector<double>& after) {
  const double predicted = report.prediction.mid_seconds;
  if (predicted <= 0 || report.p50_seconds <= 0) {
    return; // nothing had to move
  }
  MachineNow now;
  now.probed_seconds = rehearsal.mid_seconds;
  now.before_seconds = median(before);
  now.after_seconds = median(after);
  const auto [faster, slower] = std::minmax(now.before_seconds, now.after_seconds);
  now.changed = slower < rehearsal.lo_seconds || faster > rehearsal.hi_seconds;
  // As much as both times: what was only once may have been a disturbance.
  const double longer = std::clamp(now.probed_seconds, faster, slower) / now.probed_seconds;
  const double passes = seconds_of(report.prediction, "passes").value_or(0);
  now.predicted_seconds = passes + (predicted - passes) * longer;
  now.error = report.p50_seconds / now.predicted_seconds - 1;
  report.machine_now = now;
  if (!now.changed || report.disturbed || in_range(report)) {
    return;
  }
  const bool explained = std::abs(now.error) <= report.tolerance;
  report.within_tolerance = report.within_tolerance || explained;
  if (std::abs(now.error) < std::abs(report.error) / 2) {
    report.cause = fmt::format(
        "the machine is {} than when it was probed ({:+.1f} %): {} took {} then and {} "
        "now; at this speed the plan predicts {}, {:+.1f} % off{}",
        longer > 1 ? "slower" : "faster", 100 * report.error, rehearsal_text(rehearsal),
        to_text(Seconds(now.probed_seconds)), to_text(Seconds(longer * now.probed_seconds)),
        to_text(Seconds(now.predicted_seconds)), 100 * now.error,
        explained ? "" : ", which is unexplained");
    report.diagnosis.reset(); // it was looked for in vain
  }
}

} // namespace reckon
