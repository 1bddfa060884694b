// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"
#include "strategies/model.hpp"
#include "strategies/play.hpp"

#include <optional>
#include <span>
#include <vector>

namespace reckon {

/// What an iteration takes longer that copies what a checkpoint saves before it is stepped
/// (equation 20b), as a plan's quantity `checkpoint_seconds`. Nothing where the profile does not
/// know how fast copies are.
///
/// On one machine, whose processors the ranks share: all of the copies. `saved` are bytes by rank.
[[nodiscard]] std::optional<Quantity>
shared_checkpoint_cost(const CostModel& model, std::span<const double> saved, double part_bytes);

/// The iteration played with its copies, less the one without: what the copies keep lanes from that
/// would not have waited for links anyway. `usual` makes optimizer steps; `cost` is of its ops.
[[nodiscard]] std::optional<Quantity> played_checkpoint_cost(const CostModel& model,
                                                             const Schedule& usual,
                                                             const PlayNetwork& network,
                                                             const OpCost& cost, double part_bytes);

/// Bytes that each rank saves of a schedule that makes optimizer steps.
[[nodiscard]] std::vector<double> saved_bytes(const Schedule& usual);

} // namespace reckon
