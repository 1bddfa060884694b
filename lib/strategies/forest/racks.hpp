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

/// Equation 17 (PHub 3). Every rack with workers is the root of an equal share. In each rack the
/// ranks that only serve, or else the workers, sum the workers' data; one stream a rack goes to the
/// root and one comes back. The ranks of a rack that sum have equal shares, too.
struct RackTrees {
  std::string reason; ///< why there are no trees over racks; empty: there are
  std::size_t racks = 0;
  std::vector<SumTree> trees; ///< over the model's ranks
};
[[nodiscard]] RackTrees trees_over_racks(const CostModel& model);

} // namespace reckon
