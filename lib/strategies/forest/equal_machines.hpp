// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/forest/planner.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Each machine sums its own, then the machines as in byteps_split and two_level_split.
inline constexpr const char* k_hierarchical_split = "hierarchical_split";
inline constexpr const char* k_hierarchical_two_level = "hierarchical_two_level_split";

/// Ranks up to which trees between them are solved and listed at once, and up to which they are
/// where equal machines are far from their bound: beyond, that takes minutes.
inline constexpr std::size_t k_few_ranks = 128, k_most_ranks_with_trees = 256;

/// Why the ranks are no equal machines with equally many places and some that only serve; empty:
/// they are.
[[nodiscard]] std::string why_not_equal_machines(const Profile& profile,
                                                 const std::vector<PlanRank>& ranks,
                                                 const InsidePlanOptions& options, bool gpu_direct);

/// A plan for equal machines of any number (equation 8d): the shares of equation 8 between the
/// machines; in each the workers take turns as a part's head, which sums what its machine has and
/// meets the heads of the others, each over its own network ports. What one machine's links carry
/// is what those of all carry, so that three machines and two that serve stand for all of them. A
/// short plan of few ranks is played; the time of others is the busiest station's and a part's
/// life. `ranks`: those that why_not_equal_machines() agrees to. The options' strategy is one of
/// the two, or "auto". Throws Error{input} where no way joins two machines, or no rate is known.
[[nodiscard]] Plan plan_equal_machines(const InsideInputs& inputs,
                                       const std::vector<PlanRank>& ranks,
                                       const InsidePlanOptions& options, bool gpu_direct);

} // namespace reckon
