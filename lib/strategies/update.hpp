// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/predict.hpp"

#include <functional>
#include <optional>

namespace reckon {

/// A plan with an optimizer's step.
struct UpdateChoice {
  UpdatePlan update;
  Prediction prediction; ///< of the whole iteration, with a term "update"
  /// Both places' times, the margin between them, and the rates behind them.
  std::vector<Quantity> quantities;
};

/// Seconds of a whole iteration with the step at that place, where it can be played.
using PlayedWithStep = std::function<std::optional<double>(UpdatePlace)>;

/// Equation 20: adds the step to `sums`, the prediction of the same exchange without it, at the
/// place with the least predicted time, or at the one `asked` for. Of equal places it takes the
/// workers: sums come back, which every framework can use. A profile without optimizer_step cells
/// makes the step free. `sums` must be a played time if `played` gives one.
[[nodiscard]] UpdateChoice choose_update(const CostModel& model, const Solution& solution,
                                         std::span<const double> loads, const PartShape& shape,
                                         const Prediction& sums, Optimizer optimizer,
                                         std::optional<UpdatePlace> asked,
                                         const PlayedWithStep& played = {});

} // namespace reckon
