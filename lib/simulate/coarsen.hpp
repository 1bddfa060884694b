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
  std::vector<std::uint32_t> parts; ///< by its parts: so many of the whole plan's are in it
};

/// The plan with up to `factor` parts merged into one: parts that follow one another among those
/// with the same server, lane, tree and element type, in the order in which they are sent. The
/// window has as many parts as before, so longer ones: a pipeline of them is as deep, and runs dry
/// no sooner. Only for simulation: a merged part ends where the last of its parts does, and the
/// bytes before are counted, not placed.
[[nodiscard]] MergedPlan with_merged_parts(const Plan& plan, std::uint64_t factor);

/// What the merging may add at most, as a part of the time: a server gives back its first sum when
/// the first of its w parts has come, and its last when the last has, so that filling takes 1/w of
/// the whole (the mean of those with the same server, lane and tree); and three times the part of
/// all that a window has more under way, as connections with unequal shares are done one after
/// another at the end (2.8 times at most in the plans of docs/results/simulate.md).
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
