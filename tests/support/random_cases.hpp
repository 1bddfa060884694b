// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

namespace reckon::test {

/// Random numbers of a fixed seed.
class Random : public std::mt19937_64 {
public:
  using std::mt19937_64::mersenne_twister_engine;
  /// In [0, limit).
  std::uint64_t below(std::uint64_t limit) { return (*this)() % limit; }
  bool coin() { return below(2) == 0; }
  /// From `least` to `most`, both included.
  std::uint64_t whole(std::uint64_t least, std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(least, most)(*this);
  }
  /// In [low, high).
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>((*this)() >> 11U) * 0x1p-53;
  }
};

/// Makes `check(random)` of so many cases, up to the first that fails, which says its number.
template <class Generator = Random, class Check>
void for_cases(std::uint64_t seed, int cases, const Check& check) {
  Generator random(seed);
  for (int i = 0; i < cases && !testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i << " of seed " << seed);
    check(random);
  }
}

} // namespace reckon::test
