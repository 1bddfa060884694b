// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/prediction.hpp"

#include <optional>
#include <span>

namespace reckon {

/// The additional time of an iteration that copies the data of a checkpoint before they are stepped
/// (equation 20b), as a plan's quantity `checkpoint_seconds`. Absent where the profile does not
/// know how fast copies are.
///
/// On one machine, whose processors the ranks share: all of the copies. `saved` are bytes by rank.
[[nodiscard]] std::optional<Quantity>
shared_checkpoint_cost(const CostModel& model, std::span<const double> saved, double part_bytes);

/// For a plan with optimizer steps; absent where the plan is too large for a play.
[[nodiscard]] std::optional<Quantity> checkpoint_cost(const Plan& plan, const Job& job,
                                                      const Ways& ways);

} // namespace reckon
