// SPDX-License-Identifier: Apache-2.0
#include "simulate/report.hpp"

#include "core/units.hpp"
#include "core/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

constexpr std::size_t k_most_stations = 16;

/// What the ops of a rank take on its lanes, which is known before anything is played.
struct RankWork {
  double compute_s = 0, reduce_s = 0;
  double lane_reduce_s = 0, lane_update_s = 0, lane_compute_s = 0; ///< of the lane that does most
  double passes_s = 0;
};

std::vector<RankWork> work_of(const SimulatedPlan& simulated) {
  const std::vector<double> factor = simulated.scenario.op_factors(simulated.schedule.ranks.size());
  std::vector<RankWork> all;
  for (std::size_t r = 0; r < simulated.schedule.ranks.size(); ++r) {
    RankWork work;
    work.passes_s = delay_seconds(simulated.schedule.ranks[r]).count() * factor[r];
    for (const LaneProgram& lane : simulated.schedule.ranks[r].lanes) {
      double reduce_s = 0, update_s = 0, compute_s = 0;
      for (std::size_t i = 0; i < lane.ops().size(); ++i) {
        const Op& op = lane.ops()[i];
        if (op.kind == OpKind::write || op.kind == OpKind::await || op.kind == OpKind::delay) {
          continue;
        }
        const double seconds = simulated.network.seconds_of(r, lane, i) * factor[r];
        compute_s += seconds;
        const bool sums = op.kind == OpKind::reduce || op.kind == OpKind::sum_in_place;
        reduce_s += sums ? seconds : 0;
        update_s += op.kind == OpKind::update ? seconds : 0;
      }
      work.compute_s += compute_s;
      work.reduce_s += reduce_s;
      work.lane_compute_s = std::max(work.lane_compute_s, compute_s);
      work.lane_reduce_s = std::max(work.lane_reduce_s, reduce_s);
      work.lane_update_s = std::max(work.lane_update_s, update_s);
    }
    all.push_back(work);
  }
  return all;
}

void add_ranks(Report& report, const SimulatedPlan& simulated, const SimResult& result,
               const std::vector<RankWork>& work) {
  std::vector<RankReport> played;
  std::size_t lane = 0;
  for (std::size_t r = 0; r < simulated.schedule.ranks.size(); ++r) {
    RankReport rank;
    const std::size_t lanes = simulated.schedule.ranks[r].lanes.size();
    double in_lanes = 0;
    for (std::size_t l = 0; l < lanes; ++l, ++lane) {
      in_lanes += result.lane_seconds.at(lane);
      rank.total_seconds = std::max(rank.total_seconds, result.lane_seconds[lane]);
    }
    rank.busy_seconds = rank.cpu_seconds = work[r].compute_s;
    rank.reduce_seconds = work[r].reduce_s;
    rank.wait_seconds = std::max(0.0, in_lanes - work[r].compute_s);
    played.push_back(std::move(rank));
  }
  for (std::size_t r = 0; r < simulated.plan.ranks.size(); ++r) {
    const PlanRank& planned = simulated.plan.ranks[r];
    RankReport rank = played[simulated.representative[r]];
    rank.host = planned.place_name();
    rank.egress_bytes = planned.egress_bytes;
    rank.ingress_bytes = planned.ingress_bytes;
    report.ranks.push_back(std::move(rank));
  }
}

double longest(const std::vector<RankWork>& work, double RankWork::*member) {
  double most = 0;
  for (const RankWork& rank : work) {
    most = std::max(most, rank.*member);
  }
  return most;
}

void add_stages(Report& report, const std::vector<RankWork>& work) {
  double passes = 0;
  for (const Term& term : report.prediction.terms) {
    StageReport stage{term.name, term.seconds, std::nullopt, "cannot be told apart"};
    if (term.name == "reduction") {
      stage.how = fmt::format("the busiest lane sums for {}; sums that overlap cost no time",
                              to_text(Seconds(longest(work, &RankWork::lane_reduce_s))));
    } else if (term.name == "update") {
      stage.how = fmt::format("the busiest lane makes steps for {}; part of them may overlap",
                              to_text(Seconds(longest(work, &RankWork::lane_update_s))));
    } else if (term.name == "passes") {
      stage.measured_seconds = passes = longest(work, &RankWork::passes_s);
      stage.how = "of the rank that computes longest; independent of the links";
    } else if (term.name == "exposed") {
      stage.measured_seconds = std::max(0.0, report.p50_seconds - passes);
      stage.how = "the traffic's addition to the passes";
    }
    report.stages.push_back(std::move(stage));
  }
  report.stages.push_back({"total", report.prediction.mid_seconds, report.p50_seconds,
                           "from the start to the last rank's last op"});
}

std::vector<SimulatedStation> busiest(const SimulatedPlan& simulated, const SimResult& result,
                                      double total_seconds) {
  const StationNetwork& network = simulated.network.stations;
  struct Use {
    double bytes = 0, seconds = 0;
  };
  std::vector<Use> uses(network.station_bytes_per_s.size());
  const std::vector<double> kept = simulated.scenario.kept_rates(uses.size());
  for (std::size_t r = 0; r < simulated.schedule.ranks.size(); ++r) {
    const std::vector<LaneProgram>& lanes = simulated.schedule.ranks[r].lanes;
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      for (const Op& op : lanes[lane].ops()) {
        if (op.kind != OpKind::write) {
          continue;
        }
        const auto bytes = static_cast<double>(op.bytes);
        const std::vector<std::uint32_t>& path = network.path(lane, r, op.peer);
        for (std::size_t hop = 0; hop < path.size(); ++hop) {
          Use& use = uses[path[hop]];
          const double flows = simulated.network.flows_at(lane, r, op.peer, hop);
          use.bytes += flows * bytes;
          use.seconds += flows *
                         simulated.network.busy_seconds(path[hop], bytes,
                                                        simulated.network.writes_in(op), hop == 0) /
                         kept[path[hop]];
        }
      }
    }
  }
  std::vector<double> others(uses.size(), 0);
  for (std::size_t i = 0; i < result.background_bytes.size(); ++i) {
    const Scenario::Background& b = simulated.scenario.backgrounds[i];
    for (const std::uint32_t s : network.path(b.lane, b.from, b.to)) {
      others[s] +=
          std::max(0.0, result.background_bytes[i]) / (network.station_bytes_per_s[s] * kept[s]);
    }
  }
  std::vector<SimulatedStation> stations;
  for (std::size_t s = 0; s < uses.size(); ++s) {
    if (uses[s].seconds > 0 && total_seconds > 0) {
      const double others_s = std::clamp(total_seconds - uses[s].seconds, 0.0, others[s]);
      stations.push_back({simulated.network.names[s], static_cast<std::uint64_t>(uses[s].bytes),
                          uses[s].bytes / uses[s].seconds,
                          (uses[s].seconds + others_s) / total_seconds});
    }
  }
  std::stable_sort(stations.begin(), stations.end(),
                   [](const auto& a, const auto& b) { return a.busy > b.busy; });
  stations.resize(std::min(stations.size(), k_most_stations));
  return stations;
}

/// Other traffic has its rate at most, and often less: what it got is said.
std::vector<std::string> scenario_texts(const Scenario& scenario, const SimResult& result) {
  std::map<std::size_t, double> rate_of; // by text: over all its ways
  for (std::size_t i = 0; i < result.background_bytes.size(); ++i) {
    const Scenario::Background& b = scenario.backgrounds[i];
    const double seconds = result.seconds - b.start_s;
    rate_of[b.text] += seconds > 0 ? std::max(0.0, result.background_bytes[i]) / seconds : 0;
  }
  std::vector<std::string> texts = scenario.texts;
  for (const auto& [text, rate] : rate_of) {
    texts[text] += fmt::format(", of which it got {}", to_text(Bandwidth::bytes_per_s(rate)));
  }
  return texts;
}

std::string cause_of(const Report& report, const SimulatedPlan& simulated,
                     const std::vector<RankWork>& work) {
  constexpr double k_told_error = 0.005;
  const std::string size = fmt::format("{:+.1f} %", 100 * report.error);
  if (!simulated.scenario.texts.empty()) {
    const double undisturbed = *report.simulation->undisturbed_seconds;
    return fmt::format("as asked: {} without, {:+.1f} % by {}", to_text(Seconds(undisturbed)),
                       100 * (report.p50_seconds / undisturbed - 1),
                       fmt::join(simulated.scenario.texts, "; "));
  }
  if (simulated.profile_link.digest != simulated.plan.profile.digest) {
    return fmt::format("another profile ({}): the plan was made from {}, the links are from {}",
                       size, simulated.plan.profile.name, simulated.profile_link.name);
  }
  if (report.error > 0 && simulated.merged_parts > 1 && report.error < simulated.coarsening_error) {
    return fmt::format("coarsened ({}): parts were merged by {}, which may add up to {:.1f} %",
                       size, simulated.merged_parts, 100 * simulated.coarsening_error);
  }
  const std::vector<SimulatedStation>& stations = report.simulation->stations;
  if (stations.empty()) {
    return longest(work, &RankWork::lane_compute_s) > 0
               ? fmt::format("sums ({}): made in place, so nothing is sent", size)
               : "nothing moves";
  }
  if (simulated.network.names.size() == 1 && simulated.plan.ranks.front().endpoint.empty() &&
      std::abs(report.error) > k_told_error) { // all share its memory
    return fmt::format("one machine ({}): its processors copy and add in turn; the prediction adds "
                       "these times, the simulation overlaps them; run it",
                       size);
  }
  // Below it what waits is no longer explained by what it waits for.
  constexpr double k_busy = 0.9;
  const double link = stations.front().busy;
  const double sums = longest(work, &RankWork::lane_compute_s) / report.p50_seconds;
  const double passes = longest(work, &RankWork::passes_s) / report.p50_seconds;
  if (passes > std::max(link, sums)) {
    return fmt::format(
        "passes ({}): {:.0f} % of the time; the busiest link, {}, is busy for {:.0f} %", size,
        100 * passes, stations.front().name, 100 * link);
  }
  if (link < k_busy && sums > link) {
    return fmt::format("sums ({}): the busiest lane computes for {:.0f} % of the time; the busiest "
                       "link, {}, is busy for {:.0f} %",
                       size, 100 * sums, stations.front().name, 100 * link);
  }
  if (link < k_busy && std::abs(report.error) > k_told_error) {
    return fmt::format(
        "waiting ({}): the busiest link, {}, is busy for {:.0f} % of the time; too few parts are "
        "in flight ({} per lane), or ranks that share a link are late together",
        size, stations.front().name, 100 * link, simulated.plan.window_parts);
  }
  return fmt::format("network ({}): {} is busy for {:.0f} % of the time", size,
                     stations.front().name, 100 * link);
}

} // namespace

Report simulation_report(const SimulatedPlan& simulated, const SimResult& result) {
  const Plan& plan = simulated.plan;
  Report report;
  report.kind = "simulation";
  report.plan = simulated.plan_link;
  report.profile = plan.profile;
  report.workload = plan.workload;
  report.strategy = plan.strategy;
  report.transport = plan.transport;
  report.prediction = without(plan.prediction, k_contention); // its passes only wait
  report.prediction = without(report.prediction, k_copies);   // and gradients lie in memory
  report.tolerance = simulated.tolerance;
  report.context["tool"] = std::string("reckon ") + k_version;
  report.context["took"] =
      fmt::format("{} of processor time, {}", to_text(Seconds(result.cpu_seconds)),
                  to_text(Bytes(result.peak_bytes)));
  // Reports have times above 0: with nothing to move, a nanosecond.
  constexpr double k_least = 1e-9;
  const double seconds = std::max(result.seconds, k_least);
  report.iteration_seconds = {seconds};
  report.min_seconds = report.p50_seconds = report.p99_seconds = seconds;
  report.error = plan.prediction.mid_seconds > 0 ? seconds / plan.prediction.mid_seconds - 1 : 0;
  report.goodput_over_bound = plan.prediction.bound_seconds / seconds;
  // What merging parts may have added is not held against the prediction.
  const double at_least = (1 + report.error) / (1 + simulated.coarsening_error) - 1;
  report.within_tolerance = report.error >= -simulated.tolerance && at_least <= simulated.tolerance;
  Simulation& simulation = report.simulation.emplace();
  simulation.profile = simulated.profile_link;
  simulation.engine = result.engine;
  simulation.settings = result.settings;
  if (simulated.schedule.ranks.size() < plan.ranks.size()) {
    simulation.settings["ranks played"] =
        fmt::format("{} of {}; the others do the same as one of these",
                    simulated.schedule.ranks.size(), plan.ranks.size());
  }
  simulation.ops = simulated.ops;
  simulation.flows = result.flows;
  simulation.merged_parts = simulated.merged_parts;
  simulation.coarsening_error = simulated.coarsening_error;
  simulation.scenarios = scenario_texts(simulated.scenario, result);
  simulation.undisturbed_seconds = simulated.undisturbed_seconds;
  simulation.stations = busiest(simulated, result, seconds);
  const std::vector<RankWork> work = work_of(simulated);
  add_ranks(report, simulated, result, work);
  add_stages(report, work);
  report.cause = cause_of(report, simulated, work);
  report.verification.ok = true; // no byte was moved, none was wrong
  return report;
}

} // namespace reckon
