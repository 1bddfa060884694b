// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace reckon {

// fp32 as whole numbers, for sums by devices that only add whole numbers (switches). Memory may be
// of any type; fp32 and int32 take the same place, and a conversion may be in place.

/// to[i] = from[i] 2^exponent, rounded to the nearest whole number, ties to even, and held within
/// +-limit. A NaN becomes -limit, so that it does not pass for a number. |exponent| <= 126, limit
/// >= 0.
void to_fixed(void* to, const void* from, std::size_t elements, int exponent,
              std::int32_t limit) noexcept;

/// to[i] = from[i] 2^-exponent, rounded to the nearest fp32.
void from_fixed(void* to, const void* from, std::size_t elements, int exponent) noexcept;

/// to[i] = the sum over all sources, modulo 2^32. A source may be `to` itself. No sources: zeros.
void sum_int32_into(void* to, std::span<const void* const> sources, std::size_t elements) noexcept;

} // namespace reckon
