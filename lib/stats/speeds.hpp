// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace reckon {

/// A machine that does the same work now fast, now slowly, and seldom between: as a virtual one
/// whose memory others use.
struct TwoSpeeds {
  double fast_seconds = 0, slow_seconds = 0; ///< median of each
  double fast_share = 0;                     ///< of the times, above 0 and below 1
};

/// The two speeds of these times, which must be above 0; absent: they are of one, or too few to
/// tell. Times are split, by their logarithms, where both parts together vary least (Otsu 1979).
/// They are of two speeds if each part has at least a tenth of them, the slow ones take at
/// least 1.15 times as long, and the parts are at least five times as far from each other as they
/// vary (Ashman's D, Ashman et al. 1994; one normal distribution has 2.6, an even one 3.5).
[[nodiscard]] std::optional<TwoSpeeds> two_speeds(std::vector<double> seconds);

} // namespace reckon
