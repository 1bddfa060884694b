// SPDX-License-Identifier: Apache-2.0
#include "simulate/report.hpp"

#include "core/units.hpp"
#include "core/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

constexpr std::size_t k_most_stations = 16;

/// What the ops of a rank take on its lanes, which is known before anything is played.
struct RankWork {
  double compute_s = 0, reduce_s = 0;
  double lane_reduce_s = 0, lane_update_s = 0; ///< of the lane that does most of it
};

std::vector<RankWork> work_of(const SimulatedPlan& simulated) {
  std::vector<double> factor(simulated.schedule.ranks.size(), 1);
  for (const auto& [rank, times] : simulated.scenario.stragglers) {
    factor[rank] *= times;
  }
  std::vector<RankWork> all;
  for (std::size_t r = 0; r < simulated.schedule.ranks.size(); ++r) {
    RankWork work;
    for (const LaneProgram& lane : simulated.schedule.ranks[r].lanes) {
      double reduce_s = 0, update_s = 0;
      for (std::size_t i = 0; i < lane.ops().size(); ++i) {
        const Op& op = lane.ops()[i];
        if (op.kind == OpKind::write || op.kind == OpKind::await || op.kind == OpKind::delay) {
          continue;
        }
        const double seconds = simulated.network.seconds_of(r, lane, i) * factor[r];
        work.compute_s += seconds;
        reduce_s += op.kind == OpKind::reduce ? seconds : 0;
        update_s += op.kind == OpKind::update ? seconds : 0;
      }
      work.reduce_s += reduce_s;
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
    rank.host = planned.endpoint.empty() ? planned.machine : planned.endpoint;
    rank.egress_bytes = planned.egress_bytes;
    rank.ingress_bytes = planned.ingress_bytes;
    report.ranks.push_back(std::move(rank));
  }
}

void add_stages(Report& report, const std::vector<RankWork>& work) {
  const auto longest = [&](double RankWork::*member) {
    double most = 0;
    for (const RankWork& rank : work) {
      most = std::max(most, rank.*member);
    }
    return most;
  };
  double passes = 0;
  for (const Term& term : report.prediction.terms) {
    StageReport stage{term.name, term.seconds, std::nullopt, "cannot be told apart"};
    if (term.name == "reduction") {
      stage.measured_seconds = longest(&RankWork::lane_reduce_s);
      stage.how = "the lane that sums most; what overlaps with transport costs no time";
    } else if (term.name == "update") {
      stage.measured_seconds = longest(&RankWork::lane_update_s);
      stage.how = "the lane that steps most; part of it may overlap";
    } else if (term.name == "passes") {
      stage.measured_seconds = passes = term.seconds;
      stage.how = "as planned: these seconds pass whatever the links do";
    } else if (term.name == "exposed") {
      stage.measured_seconds = std::max(0.0, report.p50_seconds - passes);
      stage.how = "what the traffic adds to the passes";
    }
    report.stages.push_back(std::move(stage));
  }
  report.stages.push_back({"total", report.prediction.mid_seconds, report.p50_seconds,
                           "from the start to the last rank's last op"});
}

std::vector<SimulatedStation> busiest(const SimulatedPlan& simulated, double total_seconds) {
  const StationNetwork& network = simulated.network.stations;
  struct Use {
    double bytes = 0, seconds = 0;
  };
  std::vector<Use> uses(network.station_bytes_per_s.size());
  std::vector<double> slow(uses.size(), 1);
  for (const auto& [station, factor] : simulated.scenario.slow_stations) {
    slow[station] *= factor;
  }
  for (std::size_t r = 0; r < simulated.schedule.ranks.size(); ++r) {
    for (const LaneProgram& lane : simulated.schedule.ranks[r].lanes) {
      for (const Op& op : lane.ops()) {
        if (op.kind != OpKind::write) {
          continue;
        }
        const auto bytes = static_cast<double>(op.bytes);
        const std::vector<std::uint32_t>& path = network.paths[r][op.peer];
        for (std::size_t hop = 0; hop < path.size(); ++hop) {
          Use& use = uses[path[hop]];
          const double flows = simulated.network.flows_at(r, op.peer, hop);
          use.bytes += flows * bytes;
          use.seconds += flows *
                         (network.busy_seconds(path[hop], bytes, bytes) +
                          (hop == 0 ? simulated.network.write_overhead_s : 0)) /
                         slow[path[hop]];
        }
      }
    }
  }
  std::vector<SimulatedStation> stations;
  for (std::size_t s = 0; s < uses.size(); ++s) {
    if (uses[s].seconds > 0 && total_seconds > 0) {
      stations.push_back({simulated.network.names[s], static_cast<std::uint64_t>(uses[s].bytes),
                          uses[s].bytes / uses[s].seconds, uses[s].seconds / total_seconds});
    }
  }
  std::stable_sort(stations.begin(), stations.end(),
                   [](const auto& a, const auto& b) { return a.busy > b.busy; });
  stations.resize(std::min(stations.size(), k_most_stations));
  return stations;
}

std::string cause_of(const Report& report, const SimulatedPlan& simulated) {
  const std::string size = fmt::format("{:+.1f} %", 100 * report.error);
  if (!simulated.scenario.texts.empty()) {
    return fmt::format("as asked ({}): {}", size, fmt::join(simulated.scenario.texts, "; "));
  }
  if (simulated.profile_link.digest != simulated.plan.profile.digest) {
    return fmt::format("another profile ({}): the plan was made from {}, the links are those of {}",
                       size, simulated.plan.profile.name, simulated.profile_link.name);
  }
  if (simulated.coarsening_error > simulated.tolerance) {
    return fmt::format("coarsened ({}): parts were merged by {}, which is expected to add up to "
                       "{:.0f} %",
                       size, simulated.merged_parts, 100 * simulated.coarsening_error);
  }
  const std::vector<SimulatedStation>& stations = report.simulation->stations;
  return stations.empty() ? "nothing moves"
                          : fmt::format("network ({}): {} is busy for {:.0f} % of the time", size,
                                        stations.front().name, 100 * stations.front().busy);
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
  report.prediction = plan.prediction;
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
  report.within_tolerance = std::abs(report.error) <= simulated.tolerance;
  Simulation& simulation = report.simulation.emplace();
  simulation.profile = simulated.profile_link;
  simulation.engine = result.engine;
  simulation.settings = result.settings;
  if (simulated.schedule.ranks.size() < plan.ranks.size()) {
    simulation.settings["ranks played"] =
        fmt::format("{} of {}, the others do the same as one of them",
                    simulated.schedule.ranks.size(), plan.ranks.size());
  }
  simulation.ops = simulated.ops;
  simulation.flows = result.flows;
  simulation.merged_parts = simulated.merged_parts;
  simulation.coarsening_error = simulated.coarsening_error;
  simulation.scenarios = simulated.scenario.texts;
  simulation.stations = busiest(simulated, seconds);
  const std::vector<RankWork> work = work_of(simulated);
  add_ranks(report, simulated, result, work);
  add_stages(report, work);
  report.cause = cause_of(report, simulated);
  report.verification.ok = true; // no byte was moved, none was wrong
  return report;
}

} // namespace reckon
