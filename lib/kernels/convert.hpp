// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace reckon {

// One element at a time: the meaning of fp16 (IEEE 754 binary16) and bf16 (upper half of binary32)
// that the vector kernels are tested against, and enough for filling and checking buffers. Both
// widenings are exact; both narrowings round to nearest, ties to even, keep signed zeros and
// infinities, overflow to infinity and turn every NaN into a quiet NaN of the same sign.

[[nodiscard]] constexpr float bf16_to_float(std::uint16_t half) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U);
}

[[nodiscard]] constexpr std::uint16_t float_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFF'FFFFU) > 0x7F80'0000U) {
    // Rounding a NaN could carry into the exponent and give an infinity or a zero.
    return static_cast<std::uint16_t>((bits >> 16U) | 0x0040U);
  }
  const std::uint32_t odd = (bits >> 16U) & 1U;
  return static_cast<std::uint16_t>((bits + 0x7FFFU + odd) >> 16U);
}

[[nodiscard]] constexpr float fp16_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1FU;
  const std::uint32_t fraction = half & 0x3FFU;
  if (exponent == 0) {
    const float magnitude =
        static_cast<float>(fraction) * 0x1p-24F; // exact: subnormal halves are normal floats
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if (exponent == 0x1F) {
    const std::uint32_t quiet = fraction != 0 ? 0x0040'0000U : 0U;
    return std::bit_cast<float>(sign | 0x7F80'0000U | (fraction << 13U) | quiet);
  }
  return std::bit_cast<float>(sign | ((exponent + 127 - 15) << 23U) | (fraction << 13U));
}

[[nodiscard]] constexpr std::uint16_t float_to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFF'FFFFU;
  if (magnitude > 0x7F80'0000U) {
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((magnitude >> 13U) & 0x3FFU));
  }
  if (magnitude >= 0x4780'0000U) { // 65536 and above, infinity too
    return static_cast<std::uint16_t>(sign | 0x7C00U);
  }
  if (magnitude < 0x3880'0000U) { // below 2^-14: a subnormal half, a multiple of 2^-24
    // The sum's last place is 2^-24, so that the addition itself rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign |
                                      (std::bit_cast<std::uint32_t>(shifted) - 0x3F00'0000U));
  }
  const std::uint32_t odd = (magnitude >> 13U) & 1U;
  const std::uint32_t rounded =
      magnitude + 0xFFFU + odd; // may carry into the exponent, up to infinity
  return static_cast<std::uint16_t>(sign | ((rounded - (112U << 23U)) >> 13U));
}

} // namespace reckon
