// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "strategies/predict.hpp"

#include <optional>

namespace reckon {

/// The exchange of ranks that share one machine with this load: each processor does the writes and
/// sums of its lanes one after the other, at its part of the measured rates for the processors at
/// work, or, with sums in place, reads all gradients of its parts once and writes them once.
///
/// Where small plans were rehearsed on the machine, times what these took beside what the same
/// arithmetic gives for them (equation 15b). `ring`: sums travel round the workers.
[[nodiscard]] Prediction predict_on_machine(const CostModel& model, const Load& load,
                                            const PartShape& shape, bool ring);

/// The rehearsal of a plan's kind (strategy, sums in place or not) with the nearest ranks, then
/// workers, then parts, as factors; absent where nothing of this kind was rehearsed.
[[nodiscard]] std::optional<RehearsalPlan> rehearsal_like(const Plan& plan, const CostModel& model);

} // namespace reckon
