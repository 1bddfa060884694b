// SPDX-License-Identifier: Apache-2.0
#include "network/rate.hpp"

#include "documents/cells.hpp"
#include "documents/profile.hpp"
#include "stats/summary.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
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

BusyCurve busy_curve(std::span<const Cell* const> cells, double times) {
  std::map<double, double> best;
  for (const Cell* const cell : cells) {
    if (cell->p50 > 0) {
      const auto bytes = static_cast<double>(std::max<std::uint64_t>(1, cell->key.bytes));
      const double seconds = bytes / (times * cell->p50);
      const auto [at, added] = best.emplace(bytes, seconds);
      at->second = std::min(at->second, seconds);
    }
  }
  const BusyCurve measured({best.begin(), best.end()});
  if (best.size() < 2) {
    return measured;
  }
  const auto [shortest, seconds] = *best.begin();
  const double empty = std::max(0.0, seconds - shortest / measured.bytes_per_s());
  if (shortest > 1) {
    best.emplace(1, empty);
  }
  return BusyCurve({best.begin(), best.end()});
}

bool bind_together(double together, double alone) {
  constexpr double k_rounding = 1e-9;
  return together < alone * (1 - k_rounding);
}

bool is_over(const Cell& cell, std::string_view transport) {
  return transport.empty() || cell.key.transport.empty() || cell.key.transport == transport;
}

} // namespace reckon
