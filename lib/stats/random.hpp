// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace reckon {

/// A well-mixed hash of a number (the finalizer of splitmix64), the same on every machine.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

/// Uniform in [0, n), n > 0. std::uniform_int_distribution gives other numbers in other standard
/// libraries; this gives the same everywhere.
[[nodiscard]] std::size_t uniform_index(std::mt19937_64& engine, std::size_t n);
/// Uniform in [0, 1), a multiple of 2^-53; the same everywhere.
[[nodiscard]] double uniform_unit(std::mt19937_64& engine);

} // namespace reckon
