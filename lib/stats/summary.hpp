// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace reckon {

/// Order statistics of a set of samples, in the samples' own unit. Robust on purpose: timings have
/// a long slow tail, so there is no mean and no standard deviation.
struct Summary {
  std::size_t n = 0; ///< 0: no samples, and every other field is NaN
  double min = std::numeric_limits<double>::quiet_NaN();
  double p50 = std::numeric_limits<double>::quiet_NaN();
  double p99 = std::numeric_limits<double>::quiet_NaN();
  double max = std::numeric_limits<double>::quiet_NaN();
  /// Median absolute deviation from the median, not scaled to a standard deviation.
  double mad = std::numeric_limits<double>::quiet_NaN();
  /// mad / |p50|, dimensionless; 0 when mad is 0, infinity when only p50 is 0.
  double spread = std::numeric_limits<double>::quiet_NaN();
};

/// Quantile q in [0, 1] of ascending samples, linear between the two nearest (type 7 of Hyndman and
/// Fan, 1996: position q (n - 1)). NaN when there are no samples. Throws Error{internal} when q is
/// outside [0, 1].
[[nodiscard]] double percentile(std::span<const double> sorted, double q);

/// percentile() of samples in any order.
[[nodiscard]] double quantile(std::vector<double> samples, double q);

/// Median of samples in any order; 0 without samples.
[[nodiscard]] double median(std::vector<double> samples);

/// Summary of times, or of other quantities where large is bad. Throws Error{internal} on a sample
/// that is not finite.
[[nodiscard]] Summary summarize(std::span<const double> samples);

/// Summary, in bytes per second, of transfers of `bytes` that took `seconds` each. The percentiles
/// are those of the time: 99 % of the transfers reach the rate p99, the slow tail, so that min <=
/// p99 <= p50 <= max. mad and spread are of the per-sample rates about p50. Throws Error{internal}
/// on a time that is not finite and above 0.
[[nodiscard]] Summary summarize_rate(std::span<const double> seconds, double bytes);

} // namespace reckon
