// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"
#include "simulate/build.hpp"
#include "simulate/scenario.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace reckon {

/// A plan of which ranks that do the same are played by a few of them. Fair shares are the same for
/// flows that are alike, so that what the few take is exactly what all take.
struct FoldedPlan {
  Plan plan;                                 ///< of those that are played
  std::vector<std::uint32_t> rank;           ///< by rank played: its number in the whole plan
  std::vector<std::uint64_t> copies;         ///< by rank played: so many ranks, itself included
  std::vector<std::uint32_t> representative; ///< by rank of the whole plan: who plays it
};

/// Each rank played by itself.
[[nodiscard]] FoldedPlan unfolded(const Plan& plan);

/// Folds ranks that are alike: the same machine, rack and role, no part of their own to sum, the
/// same place at the end of every tree, the same writes to the same peers (looked at in a sample of
/// the plan, lowered by `lower`), on every lane ways as fast (by each port, in the scenario), and
/// none that stragglers or other traffic name. A group is played by as many as its least divisor,
/// at least 2, so that each plays equally many.
[[nodiscard]] FoldedPlan fold_ranks(const Plan& plan,
                                    const std::function<Schedule(const Plan&)>& lower,
                                    const SimNetwork& network, const Scenario& scenario);

/// What lies between the ranks played, each standing for its copies.
[[nodiscard]] SimNetwork fold_network(const SimNetwork& network, const FoldedPlan& folded);

/// The scenario with the numbers of the ranks played; those that it names must be kept ones.
[[nodiscard]] Scenario fold_scenario(Scenario scenario, const FoldedPlan& folded);

} // namespace reckon
