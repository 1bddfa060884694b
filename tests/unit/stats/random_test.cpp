// SPDX-License-Identifier: Apache-2.0
#include "stats/random.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace reckon {
namespace {

TEST(UniformIndex, ReachesEveryIndexEquallyOften) {
  constexpr std::uint64_t seed = 7007;
  SCOPED_TRACE(seed);
  std::mt19937_64 engine(seed);
  std::array<int, 7> counts{};
  for (int i = 0; i < 70000; ++i) {
    ++counts.at(uniform_index(engine, counts.size()));
  }
  for (const int c : counts) {
    EXPECT_NEAR(c, 10000, 4 * std::sqrt(70000 * 1.0 / 7 * 6 / 7));
  }
  EXPECT_EQ(uniform_index(engine, 1), 0U);
}

TEST(UniformUnit, IsTheSameEverywhere) {
  // The 10000th output of a default std::mt19937_64 is 9981545732273789042 by the standard
  // ([rand.predef]); its top 53 bits over 2^53.
  std::mt19937_64 engine;
  engine.discard(9999);
  EXPECT_EQ(uniform_unit(engine),
            static_cast<double>(9981545732273789042U >> 11U) / 9007199254740992.0);
}

} // namespace
} // namespace reckon
