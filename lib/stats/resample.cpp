// SPDX-License-Identifier: Apache-2.0
#include "stats/resample.hpp"

#include "core/error.hpp"
#include "stats/summary.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace reckon {

std::size_t uniform_index(std::mt19937_64& engine, std::size_t n) {
  // Draws above the largest multiple of n would favour small results.
  const std::uint64_t most = std::mt19937_64::max() - std::mt19937_64::max() % n;
  std::uint64_t drawn = engine();
  while (drawn >= most) {
    drawn = engine();
  }
  return drawn % n;
}

double uniform_unit(std::mt19937_64& engine) {
  return static_cast<double>(engine() >> 11U) * 0x1p-53;
}

Interval bootstrap_median(std::span<const double> samples, double confidence, std::size_t resamples,
                          std::uint64_t seed) {
  if (!(confidence > 0 && confidence < 1) || resamples == 0) {
    fail(ErrorKind::internal, "bootstrap: the confidence must be inside (0, 1), the resamples > 0");
  }
  if (samples.empty()) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan};
  }
  std::mt19937_64 engine(seed);
  const std::size_t n = samples.size();
  std::vector<double> drawn(n);
  std::vector<double> medians(resamples);
  for (double& median : medians) {
    for (double& x : drawn) {
      x = samples[uniform_index(engine, n)];
    }
    const auto middle = drawn.begin() + static_cast<std::ptrdiff_t>(n / 2);
    std::ranges::nth_element(drawn, middle);
    median = n % 2 == 1 ? *middle : (*middle + *std::max_element(drawn.begin(), middle)) / 2;
  }
  std::ranges::sort(medians);
  return {percentile(medians, (1 - confidence) / 2), percentile(medians, (1 + confidence) / 2)};
}

} // namespace reckon
