// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planning/request.hpp"
#include "strategies/forest/planner.hpp"

#include <vector>

namespace reckon {

/// The ranks of the first machines of the profile whose group has such places, machine by machine;
/// those of the last group, or the next of the same, only sum.
/// Throws Error{usage} and Error{input} where there are not as many.
[[nodiscard]] std::vector<PlanRank> ranks_to_place(const Profile& profile,
                                                   const PlanRequest& request);

/// Equal machines by themselves where they are many, or asked for; else the trees between all
/// places. `ranks`: those of the options' machines. Throws as plan_inside() and
/// plan_equal_machines(), and Error{input} where the latter is asked for and does not apply.
[[nodiscard]] Plan plan_between_places(const InsideInputs& inputs, const PlanRequest& request,
                                       std::vector<PlanRank> ranks,
                                       const InsidePlanOptions& options, bool gpu_direct);

} // namespace reckon
