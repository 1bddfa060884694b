// SPDX-License-Identifier: Apache-2.0
#include "compare/adjust.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace reckon {

std::vector<double> adjust_p_values(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] > p[b]; });
  std::vector<double> adjusted(p.size());
  double least = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto rank = static_cast<double>(order.size() - i); // among the p-values, ascending
    least = std::min(least, p[order[i]] * static_cast<double>(p.size()) / rank);
    adjusted[order[i]] = least;
  }
  return adjusted;
}

} // namespace reckon
