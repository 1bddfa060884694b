// SPDX-License-Identifier: Apache-2.0
#include "probe/growth.hpp"

#include "stats/summary.hpp"

#include <algorithm>
#include <cstddef>
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

double least_of_the_fastest(std::span<const double> loads,
                            const std::function<bool(int rounds)>& again,
                            const std::function<double(double load)>& rate_of) {
  std::vector<std::vector<double>> over_first(loads.size());
  int rounds = 0;
  do {
    const double first = rate_of(loads.front());
    over_first.front().push_back(1);
    for (std::size_t i = 1; i < loads.size(); ++i) {
      over_first[i].push_back(rate_of(loads[i]) / first);
    }
  } while (again(++rounds));
  std::vector<double> usual;
  for (const std::vector<double>& of_load : over_first) {
    usual.push_back(median(of_load));
  }
  const double best = *std::ranges::max_element(usual);
  const auto enough =
      std::ranges::find_if(usual, [&](double rate) { return rate * (1 + k_growth) >= best; });
  return enough == usual.end() ? loads.front() // without a rate nothing can be said
                               : loads[static_cast<std::size_t>(enough - usual.begin())];
}

} // namespace reckon
