// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"

#include <array>
#include <span>
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

/// Seconds that one of several in a row takes, by size, from rates measured at several sizes: the
/// best of a size. What an empty one would take is below the shortest, too, as far as the two
/// longest tell what its bytes take. Of rates at one size only, bytes are all that counts. Empty
/// without a rate above 0. `times`: of so many at once, each of which has the cell's rate.
[[nodiscard]] BusyCurve busy_curve(std::span<const Cell* const> cells, double times = 1);

/// Whether a cell counts for this transport: it names it or none, or any is asked for ("").
[[nodiscard]] bool is_over(const Cell& cell, std::string_view transport);

} // namespace reckon
