// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace reckon {

/// Samples in order, for comparing many sets with one: each costs a search, not another sort.
struct RankedSamples {
  /// Throws Error{internal} on NaN.
  explicit RankedSamples(std::vector<double> samples);
  std::vector<double> values; ///< ascending
  double tie_term = 0;        ///< sum over ties of t^3 - t
};

/// Two-sided p-value of the Mann-Whitney U test: how likely ranks at least this uneven are if both
/// sets come from one distribution (H. B. Mann, D. R. Whitney, Ann. Math. Stat. 18, 1947).
/// Symmetric in a and b.
///
/// nullopt when there are too few samples for any outcome to reach `alpha`: the smallest attainable
/// value, 2 / C(n_a + n_b, n_a), is above it (0.05 needs 4 + 4, 3 + 5 or 2 + 8). Say "too few
/// repetitions" then, not "no difference".
///
/// Exact, also with ties (the permutation distribution of the mid-ranks), up to 40 samples in all;
/// above that the normal approximation with tie and continuity correction. Throws Error{internal}
/// on NaN.
[[nodiscard]] std::optional<double> rank_test(std::span<const double> a, const RankedSamples& b,
                                              double alpha = 0.05);
[[nodiscard]] std::optional<double> rank_test(std::span<const double> a, std::span<const double> b,
                                              double alpha = 0.05);

} // namespace reckon
