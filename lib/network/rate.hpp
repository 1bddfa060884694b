// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace reckon {

struct Cell;

/// Which of the three numbers of every prediction: an optimistic, a middle, a pessimistic time.
enum class Estimate { lo, mid, hi };
inline constexpr std::array<Estimate, 3> k_estimates{Estimate::lo, Estimate::mid, Estimate::hi};

/// A rate with the interval its measurements lie in. From published figures all three are equal.
struct Rate {
  double lo = 0, mid = 0, hi = 0; ///< bytes per second
  [[nodiscard]] double slow_to_fast(Estimate e) const {
    return e == Estimate::lo ? hi : e == Estimate::hi ? lo : mid;
  }
};

/// The median of a cell and where its samples lie: the 10th and 90th percentiles (the median alone
/// without samples).
[[nodiscard]] Rate measured_rate(const Cell& cell);

/// Whether a cell counts for this transport: it names it or none, or any is asked for ("").
[[nodiscard]] bool is_over(const Cell& cell, std::string_view transport);

} // namespace reckon
