// SPDX-License-Identifier: Apache-2.0
#include "kernels/convert.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace reckon {
namespace {

/// The value of a half by the definition of IEEE 754: (-1)^s 2^(e - 15) (1 + f / 1024), or 2^-24 f
/// when e is 0.
double fp16_by_definition(unsigned half) {
  const double sign = (half & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((half >> 10U) & 0x1FU);
  const double fraction = half & 0x3FFU;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  }
  return exponent == 0 ? sign * std::ldexp(fraction, -24)
                       : sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Fp16, EveryValueIsWhatTheDefinitionSays) {
  for (unsigned h = 0; h <= 0xFFFF; ++h) {
    const double expected = fp16_by_definition(h);
    const float value = fp16_to_float(static_cast<std::uint16_t>(h));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << h;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << h;
      ASSERT_EQ(std::signbit(value), (h & 0x8000U) != 0) << h;
    }
  }
}

TEST(Fp16, EveryValueComesBack) {
  for (unsigned h = 0; h <= 0xFFFF; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    const std::uint16_t back = float_to_fp16(fp16_to_float(half));
    if (std::isnan(fp16_to_float(half))) {
      ASSERT_EQ(back, h | 0x0200U) << h; // the same NaN, made quiet
    } else {
      ASSERT_EQ(back, h);
    }
  }
}

TEST(Fp16, BetweenTwoNeighboursTheNearerIsTakenAndTheEvenOneInTheMiddle) {
  // Midpoints of neighbouring halves are exact in float (11 + 1 bits), as are its neighbours on
  // either side.
  for (unsigned h = 0; h < 0x7BFF; ++h) {
    const float low = fp16_to_float(static_cast<std::uint16_t>(h));
    const float high = fp16_to_float(static_cast<std::uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;
    for (const bool negative : {false, true}) {
      const float s = negative ? -1.0F : 1.0F;
      const unsigned sign = negative ? 0x8000U : 0U;
      ASSERT_EQ(float_to_fp16(s * middle), sign | (h % 2 == 0 ? h : h + 1)) << h;
      ASSERT_EQ(float_to_fp16(s * std::nextafter(middle, low)), sign | h) << h;
      ASSERT_EQ(float_to_fp16(s * std::nextafter(middle, high)), sign | (h + 1)) << h;
    }
  }
}

TEST(Fp16, TheEndsOfTheRange) {
  // 65504 is the largest half; the next would be 65536, so 65520 is the tie and goes to the even
  // one, infinity.
  EXPECT_EQ(float_to_fp16(65504.0F), 0x7BFF);
  EXPECT_EQ(float_to_fp16(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(float_to_fp16(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_fp16(-1e30F), 0xFC00);
  EXPECT_EQ(float_to_fp16(std::numeric_limits<float>::infinity()), 0x7C00);
  EXPECT_EQ(float_to_fp16(-0.0F), 0x8000);
  // 2^-25 is the tie between 0 and the least subnormal; whatever is larger goes up.
  EXPECT_EQ(float_to_fp16(0x1p-25F), 0);
  EXPECT_EQ(float_to_fp16(std::nextafter(0x1p-25F, 1.0F)), 1);
  EXPECT_EQ(float_to_fp16(std::numeric_limits<float>::denorm_min()), 0);
}

TEST(Bf16, EveryValueIsTheUpperHalfOfAFloatAndComesBack) {
  for (unsigned h = 0; h <= 0xFFFF; ++h) {
    const auto half = static_cast<std::uint16_t>(h);
    const float value = bf16_to_float(half);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), h << 16U);
    ASSERT_EQ(float_to_bf16(value), std::isnan(value) ? (h | 0x0040U) : h);
  }
}

TEST(Bf16, BetweenTwoNeighboursTheNearerIsTakenAndTheEvenOneInTheMiddle) {
  for (unsigned h = 0; h < 0x7F80;
       ++h) { // the last neighbour is infinity, whose tie goes to it (even)
    for (const unsigned sign : {0U, 0x8000U}) {
      const unsigned low = (h | sign) << 16U;
      ASSERT_EQ(float_to_bf16(std::bit_cast<float>(low + 0x7FFFU)), h | sign);
      ASSERT_EQ(float_to_bf16(std::bit_cast<float>(low + 0x8000U)),
                (h % 2 == 0 ? h : h + 1) | sign);
      ASSERT_EQ(float_to_bf16(std::bit_cast<float>(low + 0x8001U)), (h + 1) | sign);
    }
  }
}

TEST(Bf16, NotANumberStaysNotANumber) {
  // Payload only in the bits that are cut off, and the payload whose rounding would carry into the
  // sign.
  for (const std::uint32_t bits : {0x7F80'0001U, 0x7FFF'FFFFU, 0xFF80'0001U, 0xFFFF'FFFFU}) {
    EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(std::bit_cast<float>(bits)))));
    EXPECT_EQ(float_to_bf16(std::bit_cast<float>(bits)) >> 15U, bits >> 31U);
  }
}

} // namespace
} // namespace reckon
