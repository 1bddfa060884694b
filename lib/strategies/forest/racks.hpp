// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "strategies/model.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace reckon {

/// The strategy that sums in each rack first, then over the racks.
inline constexpr const char* k_rack_hierarchical = "rack_hierarchical";

/// Equation 17 (PHub 3). Racks are the roots of shares by equation 8, in which their uplinks stand
/// for ports; racks without workers only serve. In each rack the ranks that only serve, or else the
/// workers, sum the workers' data; one stream a rack goes to the root and one comes back. The ranks
/// of a rack that sum have equal shares of its own.
struct RackTrees {
  std::string reason;     ///< why there are no trees over racks; empty: there are
  std::size_t racks = 0;  ///< with workers
  double uplink_part = 0; ///< of the gradient, what the busiest of their uplinks carries each way
  std::vector<SumTree> trees; ///< over the model's ranks
};
[[nodiscard]] RackTrees trees_over_racks(const CostModel& model);

} // namespace reckon
