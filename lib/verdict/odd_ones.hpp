// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace reckon {

/// The members of a set of equal things that have less than most.
struct OddOnes {
  double expected = 0;             ///< median of the others
  std::vector<std::size_t> places; ///< indices; empty: all are alike, or there is no majority
};

/// `values`: more is better. An odd value is below the median by more than `tolerance` of it, where
/// at least two thirds are within `tolerance` of the median, so that a machine whose parts differ
/// on purpose has no odd values. Of two values the smaller is odd when it is below the other by
/// twice that. Fewer than two values have no odd one.
[[nodiscard]] OddOnes odd_ones(std::span<const double> values, double tolerance);

} // namespace reckon
