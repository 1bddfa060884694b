// SPDX-License-Identifier: Apache-2.0
#include "probe/growth.hpp"

#include <algorithm>
#include <utility>

namespace reckon {

double grow_until_steady(double first, double most,
                         const std::function<std::vector<double>(double load)>& rates_of) {
  double load = first;
  std::vector<double> rates = rates_of(load);
  while (load < most) {
    const double more = std::min(2 * load, most);
    std::vector<double> with_more = rates_of(more);
    const bool steady = std::ranges::equal(
        with_more, rates, [](double now, double before) { return now <= (1 + k_growth) * before; });
    if (steady) {
      break;
    }
    load = more;
    rates = std::move(with_more);
  }
  return load;
}

} // namespace reckon
