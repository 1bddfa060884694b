// SPDX-License-Identifier: Apache-2.0
#include "simulate/prepare.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "simulate/coarsen.hpp"
#include "simulate/fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// More do not fit into the memory of a usual machine, as a schedule and as a graph.
constexpr double k_most_writes = 8e6;

/// Each write stands for `parts`: it costs as much as they did.
SimNetwork with_merged_writes(SimNetwork network, std::uint64_t parts) {
  const auto times = static_cast<double>(parts);
  network.write_overhead_s *= times;
  for (BusyCurve& busy : network.stations.station_busy) {
    std::vector<std::pair<double, double>> points(busy.points().begin(), busy.points().end());
    for (auto& [bytes, seconds] : points) {
      bytes *= times;
      seconds *= times;
    }
    busy = BusyCurve(std::move(points));
  }
  return network;
}

[[noreturn]] void refuse(double cost, const PrepareOptions& options, const std::string& instead) {
  fail(ErrorKind::input,
       fmt::format("the simulation is estimated to take {} of processor time, more than --budget "
                   "{}: {}",
                   to_text(Seconds(cost)), to_text(Seconds(options.budget_seconds)), instead));
}

/// Ranks that the scenario makes different from others: those that it names, and those whose port
/// it slows.
std::vector<std::uint32_t> named_by(const Scenario& scenario, const SimNetwork& network) {
  std::vector<std::uint32_t> ranks;
  for (const auto& [rank, factor] : scenario.stragglers) {
    ranks.push_back(rank);
  }
  for (const Scenario::Background& background : scenario.backgrounds) {
    ranks.push_back(background.from);
    ranks.push_back(background.to);
  }
  for (std::uint32_t r = 0; r < network.stations.paths.size(); ++r) {
    const std::vector<std::uint32_t> port = port_of(network.stations, r);
    for (const auto& [station, factor] : scenario.slow_stations) {
      if (std::find(port.begin(), port.end(), station) != port.end()) {
        ranks.push_back(r);
      }
    }
  }
  return ranks;
}

std::vector<std::uint32_t> all_ranks(const Plan& plan) {
  std::vector<std::uint32_t> ranks(plan.ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0U);
  return ranks;
}

} // namespace

PreparedPlan prepare(const Plan& whole, const std::function<Schedule(const Plan&)>& lower,
                     const SimNetwork& network, const Scenario& scenario,
                     const PrepareOptions& options) {
  const FoldedPlan folded =
      fold_ranks(whole, lower, options.fold ? named_by(scenario, network) : all_ranks(whole));
  const Plan& plan = folded.plan;
  const SimNetwork between = fold_network(network, folded);
  const double writes = writes_of(plan, lower);
  std::uint64_t merge = options.merge.value_or(1);
  if (!options.merge && writes > k_most_writes) {
    merge = std::uint64_t{1} << static_cast<unsigned>(std::ceil(std::log2(writes / k_most_writes)));
  }
  std::size_t parts_before = plan.parts.size() + 1;
  for (;; merge *= 2) {
    const Plan merged = with_merged_parts(plan, merge);
    const double merged_writes =
        writes * static_cast<double>(merged.parts.size()) / static_cast<double>(plan.parts.size());
    const bool fits = merged_writes <= k_most_writes;
    if (!fits && (options.merge || merged.parts.size() >= parts_before)) {
      fail(ErrorKind::input,
           fmt::format("the plan has {:.3g} writes{}, more than the {:.3g} that can be simulated: "
                       "{}",
                       merged_writes, merge > 1 ? " with its parts merged" : "", k_most_writes,
                       options.merge ? "merge more parts with --coarsen" : "use fewer ranks"));
    }
    if (fits) {
      PreparedPlan prepared;
      prepared.schedule = lower(merged);
      prepared.representative = folded.representative;
      prepared.scenario = fold_scenario(scenario, folded);
      prepared.network = with_merged_writes(between, merge);
      prepared.merged_parts = merge;
      prepared.merging_error = merging_error(plan, merged);
      prepared.graph = build_graph(prepared.schedule, prepared.network, prepared.scenario);
      prepared.cost_seconds = simulation_cost_seconds(prepared.graph);
      if (prepared.cost_seconds <= options.budget_seconds) {
        return prepared;
      }
      if (options.merge) {
        refuse(prepared.cost_seconds, options,
               "merge parts with --coarsen auto, or give a longer --budget");
      }
      if (merged.parts.size() >= parts_before) {
        refuse(prepared.cost_seconds, options,
               "the parts cannot be merged further; give a longer --budget or use fewer ranks");
      }
    }
    parts_before = merged.parts.size();
  }
}

} // namespace reckon
