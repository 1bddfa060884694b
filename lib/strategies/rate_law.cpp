// SPDX-License-Identifier: Apache-2.0
#include "strategies/rate_law.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace reckon {
namespace {

Rate geometric(const Rate& a, const Rate& b, double t) {
  const auto mix = [t](double x, double y) { return x * std::pow(y / x, t); };
  return {mix(a.lo, b.lo), mix(a.mid, b.mid), mix(a.hi, b.hi)};
}

/// The rate at `x` of an axis; `of` gives that of one of its entries.
template <class Entry, class Of>
Rate along(const std::map<double, Entry>& axis, double x, const Of& of) {
  const auto above = axis.lower_bound(x);
  if (above == axis.end()) {
    return of(std::prev(above)->second);
  }
  if (above == axis.begin() || above->first == x) {
    return of(above->second);
  }
  const auto below = std::prev(above);
  return geometric(of(below->second), of(above->second),
                   std::log(x / below->first) / std::log(above->first / below->first));
}

} // namespace

Rate scaled(const Rate& rate, double factor) {
  return {rate.lo * factor, rate.mid * factor, rate.hi * factor};
}

void RateLaw::add(double at_once, double operands, double bytes, const Rate& rate) {
  m_rates[at_once][operands][bytes] = rate;
}

Rate RateLaw::at(double at_once, double operands, double bytes) const {
  const Rate rate = along(m_rates, at_once, [&](const Operands& of_number) {
    return along(of_number, operands, [&](const Parts& parts) {
      return along(parts, bytes, [](const Rate& r) { return r; });
    });
  });
  if (m_beyond == Beyond::same) {
    return rate;
  }
  const double measured = at_once / m_rates.begin()->first;
  return scaled(rate, m_rates.size() == 1 && m_beyond == Beyond::each ? measured
                                                                      : std::min(1.0, measured));
}

double RateLaw::best() const {
  double best = 0;
  for (const auto& [at_once, of_number] : m_rates) {
    for (const auto& [operands, parts] : of_number) {
      for (const auto& [bytes, rate] : parts) {
        best = std::max(best, rate.hi);
      }
    }
  }
  return best;
}

double RateLaw::shortest() const {
  double shortest = m_rates.begin()->second.begin()->second.begin()->first;
  for (const auto& [at_once, of_number] : m_rates) {
    for (const auto& [operands, parts] : of_number) {
      shortest = std::min(shortest, parts.begin()->first);
    }
  }
  return shortest;
}

} // namespace reckon
