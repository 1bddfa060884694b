// SPDX-License-Identifier: Apache-2.0
#include "simulate/prepare.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "simulate/coarsen.hpp"
#include "simulate/fold.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// More do not fit into the memory of a usual machine, as a schedule and as a graph.
constexpr double k_most_writes = 8e6;

[[noreturn]] void refuse(double cost, const PrepareOptions& options, const std::string& instead) {
  fail(ErrorKind::input,
       fmt::format("the simulation would take about {} of processor time, more than --time {}: {}",
                   to_text(Seconds(cost)), to_text(Seconds(options.budget_seconds)), instead));
}

} // namespace

PreparedPlan prepare(const Plan& whole, const std::function<Schedule(const Plan&)>& lower,
                     const SimNetwork& network, const Scenario& scenario,
                     const PrepareOptions& options) {
  const FoldedPlan folded =
      options.fold ? fold_ranks(whole, lower, network, scenario) : unfolded(whole);
  const Plan& plan = folded.plan;
  const SimNetwork between = fold_network(network, folded);
  const double writes = writes_of(plan, lower);
  std::uint64_t merge = std::min<std::uint64_t>(options.merge.value_or(1),
                                                std::max<std::size_t>(1, plan.parts.size()));
  if (!options.merge && writes > k_most_writes) {
    merge = std::uint64_t{1} << static_cast<unsigned>(std::ceil(std::log2(writes / k_most_writes)));
  }
  std::size_t parts_before = plan.parts.size() + 1;
  for (;; merge *= 2) {
    MergedPlan merged = with_merged_parts(plan, merge);
    const std::size_t parts = merged.plan.parts.size();
    const double merged_writes =
        writes * static_cast<double>(parts) / static_cast<double>(plan.parts.size());
    const bool fits = merged_writes <= k_most_writes;
    if (!fits && (options.merge || parts >= parts_before)) {
      fail(ErrorKind::input,
           fmt::format("the plan has {:.3g} writes{}, more than the {:.3g} that can be simulated: "
                       "{}",
                       merged_writes, merge > 1 ? " with its parts merged" : "", k_most_writes,
                       options.merge ? "merge more parts with --coarsen" : "use fewer ranks"));
    }
    if (fits) {
      PreparedPlan prepared;
      prepared.schedule = lower(merged.plan);
      prepared.representative = folded.representative;
      prepared.scenario = fold_scenario(scenario, folded);
      prepared.network = between;
      prepared.network.merged = std::move(merged.parts);
      prepared.merged_parts = merge;
      prepared.merging_error = merging_error(plan, merged.plan);
      prepared.graph = build_graph(prepared.schedule, prepared.network, prepared.scenario);
      prepared.graph.simgrid = options.simgrid;
      prepared.cost_seconds = simulation_cost_seconds(prepared.graph);
      if (prepared.cost_seconds <= options.budget_seconds) {
        return prepared;
      }
      if (options.merge) {
        refuse(prepared.cost_seconds, options,
               "merge parts with --coarsen auto, or give a longer --time");
      }
      if (parts >= parts_before) {
        refuse(prepared.cost_seconds, options,
               "the parts cannot be merged further; give a longer --time or use fewer ranks");
      }
    }
    parts_before = parts;
  }
}

} // namespace reckon
