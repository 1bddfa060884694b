// SPDX-License-Identifier: Apache-2.0
#include "network/rate.hpp"

#include "documents/cells.hpp"
#include "documents/profile.hpp"
#include "stats/summary.hpp"

#include <algorithm>
#include <vector>

namespace reckon {

Rate measured_rate(const Cell& cell) {
  if (cell.samples.size() < 3) {
    return {cell.p50, cell.p50, cell.p50};
  }
  std::vector<double> sorted = cell.samples;
  std::sort(sorted.begin(), sorted.end());
  return {percentile(sorted, 0.1), cell.p50, percentile(sorted, 0.9)};
}

bool is_over(const Cell& cell, std::string_view transport) {
  return transport.empty() || cell.key.transport.empty() || cell.key.transport == transport;
}

} // namespace reckon
