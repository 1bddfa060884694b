// SPDX-License-Identifier: Apache-2.0
#include "stats/random.hpp"

#include <cstdint>

namespace reckon {

std::size_t uniform_index(std::mt19937_64& engine, std::size_t n) {
  // Draws above the largest multiple of n would favour small results.
  const std::uint64_t most = std::mt19937_64::max() - std::mt19937_64::max() % n;
  std::uint64_t drawn = engine();
  while (drawn >= most) {
    drawn = engine();
  }
  return drawn % n;
}

double uniform_unit(std::mt19937_64& engine) {
  return static_cast<double>(engine() >> 11U) * 0x1p-53;
}

} // namespace reckon
