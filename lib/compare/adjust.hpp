// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace reckon {

/// p-values corrected for their number by the step-up rule of Y. Benjamini and Y. Hochberg, J. R.
/// Stat. Soc. B 57, 1995: rejecting those at most alpha keeps the expected share of false alarms
/// among all alarms under alpha. When nothing differs at all, every alarm is false and the chance
/// of having any is under alpha: what a gate in CI needs. Unlike Holm's rule it still sees many
/// cells that moved together and were each measured only a few times. Each p in [0, 1].
[[nodiscard]] std::vector<double> adjust_p_values(std::span<const double> p);

} // namespace reckon
