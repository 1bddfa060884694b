// SPDX-License-Identifier: Apache-2.0
#include "kernels/fixed.hpp"

#include "each_target.hpp"
#include "kernels/reduce.hpp"
#include "stats/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace reckon {
namespace {

using test::for_each_target;

std::vector<std::int32_t> fixed(const std::vector<float>& values, int exponent,
                                std::int32_t limit) {
  std::vector<std::int32_t> out(values.size());
  to_fixed(out.data(), values.data(), values.size(), exponent, limit);
  return out;
}

TEST(Fixed, RoundsToNearestTiesToEven) {
  for_each_target([] {
    // Times 2: 1, 1.5, 2.5, -1.5, -2.5, 0.5, 1.4, 0 in whole vectors and beyond.
    const std::vector<float> v{0.5F, 0.75F, 1.25F, -0.75F, -1.25F, 0.25F, 0.7F, 0.0F, 1.25F, -0.75F,
                               0.5F, 0.75F, 1.25F, -0.75F, -1.25F, 0.25F, 0.7F, 0.0F, 1.25F};
    const std::vector<std::int32_t> expected{1, 2, 2, -2, -2, 0, 1, 0, 2, -2,
                                             1, 2, 2, -2, -2, 0, 1, 0, 2};
    EXPECT_EQ(fixed(v, 1, 1000), expected);
  });
}

TEST(Fixed, StaysWithinTheLimit) {
  for_each_target([] {
    const float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> v{8.0F, -8.0F, 1e30F, -1e30F, inf, -inf, std::nanf(""), 7.0F, 6.4F};
    EXPECT_EQ(fixed(v, 0, 7), (std::vector<std::int32_t>{7, -7, 7, -7, 7, -7, -7, 7, 6}));
    // 2^31 - 1 is no float; the next lower one is 2^31 - 128.
    const std::int32_t most = std::numeric_limits<std::int32_t>::max();
    EXPECT_EQ(fixed({1e30F, -1e30F}, 0, most), (std::vector<std::int32_t>{most - 127, 127 - most}));
  });
}

TEST(Fixed, ThereAndBackIsOffByHalfAStepAtMost) {
  std::mt19937_64 engine(5);
  std::vector<float> v(1003);
  for (float& x : v) {
    x = static_cast<float>(2 * uniform_unit(engine) - 1);
  }
  for_each_target([&] {
    for (const int exponent : {3, 10, 20}) {
      std::vector<float> back = v; // in place
      to_fixed(back.data(), back.data(), back.size(), exponent, 1 << 24);
      from_fixed(back.data(), back.data(), back.size(), exponent);
      double worst = 0;
      for (std::size_t i = 0; i < v.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(back[i]) - static_cast<double>(v[i])));
      }
      EXPECT_LE(worst, std::ldexp(0.5, -exponent));
      EXPECT_GT(worst, std::ldexp(0.49, -exponent)); // of 1003 values some are near the middle
    }
  });
}

TEST(Fixed, ScalesDownToo) {
  for_each_target([] {
    EXPECT_EQ(fixed({1024.0F, 1536.0F}, -10, 100), (std::vector<std::int32_t>{1, 2}));
    std::vector<std::int32_t> n{3, -1};
    std::vector<float> back(2);
    from_fixed(back.data(), n.data(), 2, -10);
    EXPECT_EQ(back, (std::vector<float>{3072.0F, -1024.0F}));
  });
}

TEST(Fixed, SumsWholeNumbers) {
  for_each_target([] {
    for (const std::size_t n : {1U, 7U, 64U, 1001U}) {
      std::vector<std::vector<std::int32_t>> operands(5, std::vector<std::int32_t>(n));
      std::vector<std::int32_t> expected(n, 0);
      for (std::size_t s = 0; s < operands.size(); ++s) {
        for (std::size_t i = 0; i < n; ++i) {
          // Whole numbers beyond 2^24, which fp32 would round.
          operands[s][i] = static_cast<std::int32_t>((i * 7919 + s * 104729) % 200'000'001) *
                               (s % 2 == 0 ? 1 : -1) +
                           16'777'217;
          expected[i] += operands[s][i];
        }
      }
      const std::vector<const void*> sources{operands[0].data(), operands[1].data(),
                                             operands[2].data(), operands[3].data(),
                                             operands[4].data()};
      std::vector<std::int32_t> sum(n);
      sum_into(DType::int32, sum.data(), sources, n);
      EXPECT_EQ(sum, expected);
      sum_into(DType::int32, operands[0].data(), sources, n); // in place
      EXPECT_EQ(operands[0], expected);
    }
  });
}

} // namespace
} // namespace reckon
