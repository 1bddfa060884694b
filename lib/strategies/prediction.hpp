// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/job.hpp"
#include "strategies/strategy.hpp"
#include "strategies/ways.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace reckon {

/// The effort of a play: the most writes to play, and the most pieces; with more pieces they become
/// longer.
struct PlayEffort {
  double most_writes = 0, most_pieces = 0;
  /// Of a longer plan a beginning is played, and the rest goes on at the pace of its middle, if a
  /// beginning can stand for the rest. Otherwise the formula's time stands.
  bool beginnings = false;
};
/// Parts of the longer of two beginnings of a plan with more writes than the effort allows.
[[nodiscard]] inline double parts_of_beginning(double parts, double writes,
                                               const PlayEffort& effort) {
  return parts * effort.most_writes / writes * 2 / 3;
}
/// For the plan that is taken: pieces as long as a connection's queue.
inline constexpr PlayEffort k_thorough{200'000, 1e18};
/// For comparing plans.
inline constexpr PlayEffort k_quick{80'000, 80'000};

/// A plan with the same traffic and few parts: one for each rank that sums, and tree or way, with
/// all their bytes. Passes, steps and the one queue are dropped.
[[nodiscard]] Plan together(const Plan& plan);

/// Seconds of an iteration on the network between the ranks, played as far as the effort allows.
/// `writes` and the busiest station's time are those of the whole plan.
[[nodiscard]] std::optional<double> played_seconds(const Plan& plan, const Between& between,
                                                   const OpCost& cost, double writes,
                                                   double steady_s, const PlayEffort& effort);

/// Gives a plan a window, and everything that depends on it: the bytes of each rank, the bound by
/// the network between the ranks, and the predicted time, played where the effort allows.
void predict(Plan& plan, const Job& job, const Ways& ways, std::uint64_t window_parts,
             const PlayEffort& effort);

/// Moves the optimizer's step of a predicted plan, if it has one, to the other place if no place
/// was given and that saves a hundredth by prediction.
void choose_update_place(Plan& plan, const Job& job, const Ways& ways,
                         std::optional<UpdatePlace> asked, const PlayEffort& effort);

/// The bytes that the ranks of a plan move and add up.
[[nodiscard]] Load load_of(const Plan& plan, const Schedule& schedule);

} // namespace reckon
