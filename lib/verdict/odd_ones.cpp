// SPDX-License-Identifier: Apache-2.0
#include "verdict/odd_ones.hpp"

#include "stats/summary.hpp"

#include <algorithm>
#include <cmath>

namespace reckon {

OddOnes odd_ones(std::span<const double> values, double tolerance) {
  OddOnes found;
  if (values.size() < 2) {
    return found;
  }
  const bool two = values.size() == 2;
  const double most = two ? std::max(values[0], values[1]) : median({values.begin(), values.end()});
  const double allowed = (two ? 2 : 1) * tolerance * most;
  std::vector<double> others;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < most - allowed) {
      found.places.push_back(i);
    } else {
      others.push_back(values[i]);
    }
  }
  const auto alike =
      static_cast<std::size_t>(std::count_if(others.begin(), others.end(), [&](double value) {
        return std::abs(value - most) <= allowed;
      }));
  if (!two && 3 * alike < 2 * values.size()) {
    found.places.clear();
  }
  found.expected = median(std::move(others));
  return found;
}

} // namespace reckon
