// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/forest/racks.hpp"
#include "strategies/planner.hpp"

#include <optional>
#include <string>

namespace reckon {

/// The strategy of plans with the best trees between machines.
inline constexpr const char* k_optimum = "optimum";

/// Why trees between machines cannot be planned for this job; empty: they can. `plan` is the result
/// of make_plan() for it.
[[nodiscard]] std::string why_no_trees(const PlanInputs& inputs, const PlanOptions& options,
                                       const Plan& plan);

/// Replaces the strategy of `plan`, a result of make_plan(), by the best trees between its ranks
/// (equation 26): predicted on the same network, with the same lanes, passes and optimizer; part
/// size and window by the predicted time unless given. Raises the bound of both plans to the one
/// that the dual values prove. Throws Error{input} as network_between_ranks().
[[nodiscard]] Plan with_best_trees(Plan& plan, const PlanInputs& inputs,
                                   const PlanOptions& options);

/// Replaces the strategy of `plan` by these trees over racks in the same way. nullopt where the
/// busiest port or uplink alone takes `than_s`.
[[nodiscard]] std::optional<Plan> with_trees_over_racks(const Plan& plan, const PlanInputs& inputs,
                                                        const PlanOptions& options,
                                                        const RackTrees& racks, double than_s);

} // namespace reckon
