// SPDX-License-Identifier: Apache-2.0
#include "run/fixed_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {

FixedValues::FixedValues(std::uint32_t workers, const FixedPointRule& rule)
    : m_gradient_bound(rule.gradient_bound),
      m_error_bound(std::ldexp(static_cast<double>(workers), -rule.exponent - 1)) {
  for (std::uint32_t h = 0; h < k_values; ++h) {
    for (std::uint32_t w = 0; w < workers; ++w) {
      m_sums[h] += static_cast<double>(value_of(h, w));
    }
  }
}

float FixedValues::value_of(std::uint32_t h, std::uint32_t worker) const {
  const std::uint32_t mixed = test_hash((h + 7 * worker) % k_values, 0x5CA1E);
  const double mantissa = 0.5 + static_cast<double>(mixed >> 9U) * 0x1p-24; // in [0.5, 1)
  const double magnitude = std::ldexp(mantissa * m_gradient_bound, -static_cast<int>(mixed & 15U));
  // Rounding to fp32 must not leave the bound: towards zero.
  auto value = static_cast<float>(magnitude);
  if (static_cast<double>(value) > magnitude) {
    value = std::nextafter(value, 0.0F);
  }
  return (mixed >> 4U & 1U) != 0 ? -value : value;
}

void FixedValues::fill(std::span<std::byte> buffer, std::span<const DTypeRun> runs,
                       std::uint32_t index, std::uint32_t iteration) const {
  std::array<float, k_values> table{};
  for (std::uint32_t h = 0; h < k_values; ++h) {
    table[h] = value_of(h, index);
  }
  poison_gaps(buffer, runs);
  for (const DTypeRun& run : runs) {
    auto* const words = reinterpret_cast<float*>(buffer.data() + run.offset_bytes);
    for (std::uint64_t e = 0; e < run.bytes / sizeof(float); ++e) {
      words[e] = table[test_hash(e, iteration) % k_values];
    }
  }
}

RankVerification FixedValues::check(std::span<const std::byte> buffer,
                                    std::span<const DTypeRun> runs, std::uint32_t iteration) const {
  RankVerification result;
  for (const DTypeRun& run : runs) {
    const auto* const words = reinterpret_cast<const float*>(buffer.data() + run.offset_bytes);
    for (std::uint64_t e = 0; e < run.bytes / sizeof(float); ++e) {
      const double exact = m_sums[test_hash(e, iteration) % k_values];
      const double error = std::abs(static_cast<double>(words[e]) - exact);
      const double allowed = m_error_bound + (std::abs(exact) + m_error_bound) * 0x1p-24;
      result.max_error =
          std::isfinite(error) ? std::max(result.max_error, error) : result.max_error;
      if (error <= allowed) { // false for a NaN
        continue;
      }
      ++result.wrong_elements;
      if (result.first_error.empty()) {
        result.first_error =
            fmt::format("gradient byte {}: the sum is {}, off by {}; {} is allowed",
                        run.offset_bytes + e * sizeof(float), words[e], error, allowed);
      }
    }
    result.checked_bytes += run.bytes;
  }
  return result;
}

} // namespace reckon
