// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/job.hpp"
#include "strategies/strategy.hpp"
#include "strategies/ways.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace reckon {

/// What a play may cost: of more writes there is none, or only the beginnings of one; more pieces
/// make them longer.
struct PlayEffort {
  double most_writes = 0, most_pieces = 0;
  /// Of more writes a beginning is played, and the rest goes on at the pace of its middle: for
  /// plans of which a beginning stands for the rest. Else the formula's time stands.
  bool beginnings = false;
};
/// For the plan that is taken: pieces as long as a connection's queue.
inline constexpr PlayEffort k_thorough{200'000, 1e18};
/// For comparing plans.
inline constexpr PlayEffort k_quick{80'000, 80'000};

/// A plan with the same traffic and few parts: one for each rank that sums, and tree or way, with
/// all their bytes. Nothing else is left of the plan: no passes, steps or one queue.
[[nodiscard]] Plan together(const Plan& plan);

/// Seconds of an iteration on what lies between the ranks, played as far as the effort allows. Of
/// the whole plan: `writes`, and what its busiest station needs.
[[nodiscard]] std::optional<double> played_seconds(const Plan& plan, const Between& between,
                                                   const OpCost& cost, double writes,
                                                   double steady_s, const PlayEffort& effort);

/// Gives a plan a window, and what follows from it: the bytes of each rank, the bound by what lies
/// between the ranks, and the predicted time, played where the effort allows.
void predict(Plan& plan, const Job& job, const Ways& ways, std::uint64_t window_parts,
             const PlayEffort& effort);

/// Moves the optimizer's step of a predicted plan, if it has one, to the other place where nobody
/// asked for one and that is predicted to save a hundredth.
void choose_update_place(Plan& plan, const Job& job, const Ways& ways,
                         std::optional<UpdatePlace> asked, const PlayEffort& effort);

/// What the ranks of a plan move and add up.
[[nodiscard]] Load load_of(const Plan& plan, const Schedule& schedule);

} // namespace reckon
