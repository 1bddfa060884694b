// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace reckon {

/// Equation 22: sums in whole numbers of `bits` bits. Value g becomes round(g 2^e), to the nearest,
/// ties to even.

/// The largest allowed magnitude of each of `workers` addends so that no sum overflows `bits` bits:
/// floor((2^(bits-1) - 1) / workers). 1 <= workers; 2 <= bits <= 32. 0 when there are more workers
/// than the sum has values.
[[nodiscard]] std::int32_t fixed_point_limit(int bits, std::uint64_t workers);

/// The greatest e with |g| 2^e + 1/2 <= the limit for all |g| <= gradient_bound > 0, at most 126
/// and at least -126. The limit must be at least 1.
[[nodiscard]] int fixed_point_exponent(std::int32_t limit, double gradient_bound);

/// Greatest distance of a sum of `workers` rounded values from the exact sum: workers / (2 2^e),
/// since each worker's rounding is off by at most half a step.
[[nodiscard]] double fixed_point_error(int exponent, std::uint64_t workers);

} // namespace reckon
