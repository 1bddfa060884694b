// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"
#include "simulate/build.hpp"
#include "simulate/graph.hpp"
#include "simulate/scenario.hpp"

#include <cstdint>
#include <functional>
#include <optional>

namespace reckon {

struct PrepareOptions {
  /// Number of parts to merge into one; absent: as few as the budget allows.
  std::optional<std::uint64_t> merge;
  bool fold = true;            ///< fold ranks that do the same
  double budget_seconds = 120; ///< processor time of the simulator
  bool simgrid = false;        ///< SimGraph::simgrid
};

/// A plan ready to be played.
struct PreparedPlan {
  Schedule schedule; ///< of the ranks that are played
  std::vector<std::uint32_t>
      representative; ///< by rank of the plan: the played rank that stands for it
  Scenario scenario;  ///< with their numbers
  SimNetwork network; ///< the network for the schedule's writes
  SimGraph graph;
  std::uint64_t merged_parts = 1;
  double merging_error = 0;
  double cost_seconds = 0; ///< simulation_cost_seconds()
};

/// Lowers the plan by `lower`, with equal ranks folded (fold_ranks()) and its parts merged where it
/// would take more than the budget. `network` is for the plan as it is: the cost of a write beside
/// its bytes counts for each merged part. Throws Error{input} with a remedy when no allowed merging
/// is enough.
[[nodiscard]] PreparedPlan prepare(const Plan& plan,
                                   const std::function<Schedule(const Plan&)>& lower,
                                   const SimNetwork& network, const Scenario& scenario,
                                   const PrepareOptions& options);

} // namespace reckon
