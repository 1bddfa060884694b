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

/// A plan of which equal ranks are played by a few of them. Fair shares are the same for equal
/// flows, so the few take exactly as long as all.
struct FoldedPlan {
  Plan plan;                       ///< plan of the played ranks
  std::vector<std::uint32_t> rank; ///< by rank played: its number in the whole plan
  std::vector<std::uint64_t>
      copies; ///< by played rank: number of ranks that it stands for, itself included
  std::vector<std::uint32_t> representative; ///< by rank of the whole plan: the rank that plays it
};

/// Each rank played by itself.
[[nodiscard]] FoldedPlan unfolded(const Plan& plan);

/// Folds ranks that are alike: the same machine, rack and role, no part of their own to sum, the
/// same place at the end of every tree, the same writes to the same peers (in a sample of the plan,
/// lowered by `lower`), equally fast ways on every lane (by each port, in the scenario), and not
/// named by stragglers or other traffic. A group is played by its least divisor of at least 2, so
/// that each plays equally many.
[[nodiscard]] FoldedPlan fold_ranks(const Plan& plan,
                                    const std::function<Schedule(const Plan&)>& lower,
                                    const SimNetwork& network, const Scenario& scenario);

/// The network between the played ranks, each standing for its copies.
[[nodiscard]] SimNetwork fold_network(const SimNetwork& network, const FoldedPlan& folded);

/// The scenario with the numbers of the played ranks; the ranks that it names must be kept.
[[nodiscard]] Scenario fold_scenario(Scenario scenario, const FoldedPlan& folded);

} // namespace reckon
