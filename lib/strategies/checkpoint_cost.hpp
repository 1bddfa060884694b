// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/prediction.hpp"

#include <optional>
#include <span>

namespace reckon {

/// What an iteration takes longer that copies what a checkpoint saves before it is stepped
/// (equation 20b), as a plan's quantity `checkpoint_seconds`. Nothing where the profile does not
/// know how fast copies are.
///
/// On one machine, whose processors the ranks share: all of the copies. `saved` are bytes by rank.
[[nodiscard]] std::optional<Quantity>
shared_checkpoint_cost(const CostModel& model, std::span<const double> saved, double part_bytes);

/// Of a plan with optimizer steps; nothing where it is too much to play either.
[[nodiscard]] std::optional<Quantity> checkpoint_cost(const Plan& plan, const Job& job,
                                                      const Ways& ways);

} // namespace reckon
