// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/report.hpp"
#include "schedule/schedule.hpp"
#include "simulate/build.hpp"
#include "simulate/engine.hpp"

namespace reckon {

/// The played plan, and how it was played.
struct SimulatedPlan {
  const Plan& plan; ///< as given; the simulation is compared with its prediction
  DocumentLink plan_link, profile_link;
  const Schedule& schedule; ///< the network of the play
  const SimNetwork& network;
  const Scenario& scenario;
  const std::vector<std::uint32_t>& representative; ///< by rank of the plan: rank of the schedule
  std::size_t ops = 0;                              ///< of the graph
  std::uint64_t merged_parts = 1;
  double coarsening_error = 0;
  std::optional<double> undisturbed_seconds{}; ///< without the scenario, if there is one
  double tolerance = 0;
};

/// Predicted beside simulated.
[[nodiscard]] Report simulation_report(const SimulatedPlan& simulated, const SimResult& result);

} // namespace reckon
