// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace reckon {

/// The order in which the workers of a ring hand sums on, cyclic.
struct RingOrder {
  std::vector<std::size_t> ranks;
  double seconds_per_byte = 0; ///< of the busiest station, for a byte along each hop
  bool exact = false;          ///< no order is better
};

/// Seconds per byte of the busiest station when a byte goes from each rank to the next and from the
/// last to the first (equation 1 for any network: all hops of a ring carry the same bytes).
[[nodiscard]] double ring_seconds_per_byte(const StationNetwork& network,
                                           std::span<const std::size_t> order);

/// The order with the least work for the busiest station; of equals the one with the least work for
/// the other stations, and `workers`' own order if that is as good. Exact up to 12 workers, unless
/// that would take more than a second or so; beyond by exchanging stretches of the best known
/// order.
[[nodiscard]] RingOrder best_ring_order(const StationNetwork& network,
                                        std::span<const std::size_t> workers);

} // namespace reckon
