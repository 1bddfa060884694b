// SPDX-License-Identifier: Apache-2.0
#include "equations/fixed_point.hpp"

#include <algorithm>
#include <cmath>

namespace reckon {

std::int32_t fixed_point_limit(int bits, std::uint64_t workers) {
  const std::uint64_t most = (std::uint64_t{1} << static_cast<unsigned>(bits - 1)) - 1;
  return static_cast<std::int32_t>(most / workers);
}

int fixed_point_exponent(std::int32_t limit, double gradient_bound) {
  constexpr int k_most = 126; // so that 2^e and 2^-e are normal floats
  const double room = (static_cast<double>(limit) - 0.5) / gradient_bound;
  int exponent = std::ilogb(room); // 2^e <= room < 2^(e+1)
  return std::clamp(exponent, -k_most, k_most);
}

double fixed_point_error(int exponent, std::uint64_t workers) {
  return std::ldexp(static_cast<double>(workers), -exponent - 1);
}

} // namespace reckon
