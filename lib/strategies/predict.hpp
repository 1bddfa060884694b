// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/strategy.hpp"

namespace reckon {

/// What a prediction needs to know of how the gradient is cut.
struct PartShape {
  double part_bytes = 0; ///< largest part
  double part_count = 0;
  double window_parts = 1;
  DType dtype = DType::fp32; ///< of most of the gradient
};

/// Bound and predicted time of one iteration when the ranks own `loads` bytes each.
///
/// Ports: each rank's traffic over its port at the rate for that part size, beside it (it overlaps)
/// the summation on its lanes; the slower of the two of the slowest rank is the steady time.
/// Filling the pipeline adds what it takes until the first sums come back: one part from each of
/// the ranks that talk at once.
///
/// One machine: ranks share cores and memory, so that what they all write and what they all add up
/// takes turns: total bytes / measured total rate + total summed bytes / measured rate of the cores
/// in use.
[[nodiscard]] Prediction predict(const CostModel& model, const Solution& solution,
                                 std::span<const double> loads, const PartShape& shape);

} // namespace reckon
