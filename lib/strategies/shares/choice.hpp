// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/predict.hpp"
#include "strategies/shares/job.hpp"
#include "strategies/strategy.hpp"

#include <optional>
#include <string>

namespace reckon {

/// Part sizes whose predictions differ by at most this fraction of the least count as equal.
[[nodiscard]] double tolerance(const SharesJob& job);

/// A strategy as far as it has been planned.
struct Choice {
  Solution solution;
  PartShape shape;
  double exact_port_seconds = 0; ///< of the solved shares
  Prediction prediction;
  /// The same with sums in place instead of sent, or the reverse; absent where only one was wanted.
  std::optional<double> other_sums_seconds;
  std::optional<Plan> draft; ///< cut and assigned, if it may win
};

/// Turns a prediction of one exchange into that of several, one after another.
void scale(Prediction& prediction, double exchanges);

/// Solves one strategy and, unless a part size is given, takes the power of two with the least
/// predicted time. By formulas alone, without a draft.
[[nodiscard]] Choice evaluate(const SharesJob& job, const std::string& strategy);

} // namespace reckon
