// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"
#include "simulate/graph.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace reckon {

struct MergedPlan {
  Plan plan;
  std::vector<std::uint32_t> parts; ///< by its parts: the number of the whole plan's parts in it
};

/// The plan with up to `factor` parts merged into one: consecutive parts with the same server,
/// lane, tree and element type, in the order of sending. The window has as many parts as before, so
/// longer ones: the pipeline is as deep, and runs dry no sooner. Only for simulation: a merged part
/// ends where the last of its parts does, and the bytes before are counted, not placed.
[[nodiscard]] MergedPlan with_merged_parts(const Plan& plan, std::uint64_t factor);

/// The most that merging may add, as a fraction of the time. Filling takes 1/w of the whole where a
/// server has w parts (the mean over equal server, lane and tree), because it returns its first sum
/// after the first part. Three times the additional fraction under way in a window comes on top, as
/// connections with unequal shares finish one after another (2.8 times at most in the plans of
/// docs/results/simulate.md).
[[nodiscard]] double merging_error(const Plan& plan, const Plan& merged);

/// The plan with some of its parts, from all over it: enough to see who writes to whom, little
/// enough to be lowered at once.
[[nodiscard]] Plan sample_of(const Plan& plan);

/// Writes of an iteration of the plan, from a sample of it.
[[nodiscard]] double writes_of(const Plan& plan, const std::function<Schedule(const Plan&)>& lower);

/// Processor seconds that reckon-sim takes for the graph, within a factor of about 5: each write
/// costs a little, and on SimGrid more the more others are under way (docs/results/simulate.md).
[[nodiscard]] double simulation_cost_seconds(const SimGraph& graph);

} // namespace reckon
