// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/values.hpp"

#include <array>
#include <vector>

namespace reckon {

/// fp32 gradients whose sum in whole numbers must be rounded: magnitudes from the bound down to
/// 2^-16 of it, with all 24 bits of precision in use. Sums of up to 8192 workers are exact in fp64.
class FixedValues {
public:
  FixedValues(std::uint32_t workers, const FixedPointRule& rule);

  void fill(std::span<std::byte> buffer, std::span<const DTypeRun> runs, std::uint32_t index,
            std::uint32_t iteration) const;
  /// Compares every element with the exact sum. An element is wrong if it is further off than
  /// error_bound() and the rounding of the result to fp32. The result has the greatest finite
  /// distance.
  [[nodiscard]] RankVerification check(std::span<const std::byte> buffer,
                                       std::span<const DTypeRun> runs,
                                       std::uint32_t iteration) const;
  /// Equation 22: workers / (2 2^exponent).
  [[nodiscard]] double error_bound() const { return m_error_bound; }

private:
  static constexpr std::size_t k_values = 1024;
  [[nodiscard]] float value_of(std::uint32_t h, std::uint32_t worker) const;
  double m_gradient_bound, m_error_bound;
  std::array<double, k_values> m_sums{};
};

} // namespace reckon
