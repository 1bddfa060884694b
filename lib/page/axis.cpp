// SPDX-License-Identifier: Apache-2.0
#include "page/axis.hpp"

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

constexpr double k_rounding = 1e-9;

/// Every `step`-th power of `base` on the axis, times each of `factors`.
std::vector<double> powers(const Axis& axis, double base, int step,
                           const std::vector<double>& factors) {
  std::vector<double> out;
  const int first = static_cast<int>(std::floor(std::log(axis.from) / std::log(base) - k_rounding));
  const int last = static_cast<int>(std::ceil(std::log(axis.to) / std::log(base) + k_rounding));
  for (int power = first; power <= last; ++power) {
    for (const double factor : factors) {
      const double value = factor * std::pow(base, power);
      if (power % step == 0 && value >= axis.from * (1 - k_rounding) &&
          value <= axis.to * (1 + k_rounding)) {
        out.push_back(value);
      }
    }
  }
  return out;
}

} // namespace

double Axis::at(double value) const {
  const double held = std::clamp(value, from, to);
  const double part =
      logarithmic ? std::log(held / from) / std::log(to / from) : (held - from) / (to - from);
  return begin + part * (end - begin);
}

std::vector<double> round_numbers(const Axis& axis, std::size_t most) {
  constexpr std::size_t k_few = 4;
  if (axis.logarithmic) {
    std::vector<double> out = powers(axis, 10, 1, {1, 2, 5});
    if (out.size() > most) {
      out = powers(axis, 10, 1, {1, 3});
    }
    for (int step = 1; out.size() > most; ++step) {
      out = powers(axis, 10, step, {1});
    }
    const std::vector<double> even =
        out.size() < k_few ? round_numbers({axis.from, axis.to}, most) : std::vector<double>();
    return even.size() > out.size() ? even : out;
  }
  const double room = (axis.to - axis.from) / static_cast<double>(most);
  double step = std::pow(10, std::floor(std::log10(room)));
  for (const double factor : {2.0, 2.5, 2.0}) { // 1, 2, 5, 10 times a power of ten
    step *= step < room ? factor : 1;
  }
  std::vector<double> out;
  for (double n = std::ceil(axis.from / step - k_rounding);
       n * step <= axis.to + k_rounding * step && out.size() < most; ++n) {
    out.push_back(n * step);
  }
  return out;
}

std::vector<double> powers_of_two(const Axis& axis, std::size_t most) {
  std::vector<double> out = powers(axis, 2, 1, {1});
  for (int step = 2; out.size() > most; ++step) {
    out = powers(axis, 2, step, {1});
  }
  return out;
}

} // namespace reckon
