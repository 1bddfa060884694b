// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"

#include <array>
#include <span>
#include <string_view>

namespace reckon {

struct Cell;

/// Index of the three numbers of every prediction: an optimistic, a middle, a pessimistic time.
enum class Estimate { lo, mid, hi };
inline constexpr std::array<Estimate, 3> k_estimates{Estimate::lo, Estimate::mid, Estimate::hi};

/// A rate with the interval of its measurements. For published rates all three are equal.
struct Rate {
  double lo = 0, mid = 0, hi = 0; ///< bytes per second
  [[nodiscard]] double slow_to_fast(Estimate e) const {
    return e == Estimate::lo ? hi : e == Estimate::hi ? lo : mid;
  }
};

/// The median of a cell and the 10th and 90th percentiles of its samples (the median alone without
/// samples).
[[nodiscard]] Rate measured_rate(const Cell& cell);

/// Seconds of one of several consecutive writes, by size, from rates measured at several sizes: the
/// best of a size. Below the shortest size the time of an empty write is included, as the two
/// longest sizes tell what bytes take. With rates at one size only bytes count. Empty without a
/// rate above 0. `times`: number of simultaneous writes, each at the cell's rate.
[[nodiscard]] BusyCurve busy_curve(std::span<const Cell* const> cells, double times = 1);

/// Whether ports that move `together` move less than the sum of what each moves alone.
[[nodiscard]] bool bind_together(double together, double alone);

/// Whether a cell counts for this transport: it names it or none, or any is asked for ("").
[[nodiscard]] bool is_over(const Cell& cell, std::string_view transport);

} // namespace reckon
