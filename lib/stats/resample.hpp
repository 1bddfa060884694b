// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>

namespace reckon {

/// Uniform in [0, n), n > 0. std::uniform_int_distribution gives other numbers in other standard
/// libraries; this gives the same everywhere, so that a plan made from resampled inputs has the
/// same bytes everywhere.
[[nodiscard]] std::size_t uniform_index(std::mt19937_64& engine, std::size_t n);
/// Uniform in [0, 1), a multiple of 2^-53; the same everywhere.
[[nodiscard]] double uniform_unit(std::mt19937_64& engine);

struct Interval {
  double lo = 0;
  double hi = 0;
};

inline constexpr std::uint64_t k_default_seed = 20260101;

/// Percentile bootstrap interval of the median (B. Efron, Ann. Stat. 7, 1979): the central
/// `confidence` of the medians of `resamples` sets drawn from `samples` with replacement. Same
/// input and seed, same result. No samples: NaN, NaN. One sample: that sample twice, which says
/// nothing of the noise.
[[nodiscard]] Interval bootstrap_median(std::span<const double> samples, double confidence = 0.95,
                                        std::size_t resamples = 1000,
                                        std::uint64_t seed = k_default_seed);

} // namespace reckon
