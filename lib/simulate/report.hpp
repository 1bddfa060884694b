// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/report.hpp"
#include "schedule/schedule.hpp"
#include "simulate/build.hpp"
#include "simulate/engine.hpp"

namespace reckon {

/// What was played, and how.
struct SimulatedPlan {
  const Plan& plan; ///< as given; its prediction is what the simulation is held against
  DocumentLink plan_link, profile_link;
  const Schedule& schedule; ///< that was played
  const SimNetwork& network;
  const Scenario& scenario;
  const std::vector<std::uint32_t>& representative; ///< by rank of the plan: of the schedule
  std::size_t ops = 0;                              ///< of the graph
  std::uint64_t merged_parts = 1;
  double coarsening_error = 0;
  std::optional<double> undisturbed_seconds{}; ///< without the scenario, where there is one
  double tolerance = 0;
};

/// Predicted beside simulated.
[[nodiscard]] Report simulation_report(const SimulatedPlan& simulated, const SimResult& result);

} // namespace reckon
