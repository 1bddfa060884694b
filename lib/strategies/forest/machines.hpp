// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/forest/racks.hpp"
#include "strategies/planner.hpp"

#include <optional>
#include <string>

namespace reckon {

/// The strategy of plans with the best trees between machines.
inline constexpr const char* k_optimum = "optimum";

/// Why no plan with trees between machines is made for this job; empty: one can be. `plan` is what
/// make_plan() has for it.
[[nodiscard]] std::string why_no_trees(const PlanInputs& inputs, const PlanOptions& options,
                                       const Plan& plan);

/// `plan`, which make_plan() made, with the best trees between its ranks in the place of its
/// strategy (equation 26): predicted on the same network, with the same lanes, passes and
/// optimizer, part size and window by the predicted time unless they are asked for. The bound of
/// both plans is raised to what the dual values prove. Throws Error{input} as
/// network_between_ranks().
[[nodiscard]] Plan with_best_trees(Plan& plan, const PlanInputs& inputs,
                                   const PlanOptions& options);

/// `plan` with these trees over racks in the place of its strategy, in the same way. nullopt where
/// the busiest port or uplink alone takes `than_s`.
[[nodiscard]] std::optional<Plan> with_trees_over_racks(const Plan& plan, const PlanInputs& inputs,
                                                        const PlanOptions& options,
                                                        const RackTrees& racks, double than_s);

} // namespace reckon
