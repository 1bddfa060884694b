// SPDX-License-Identifier: Apache-2.0
#include "stats/summary.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace reckon {
namespace {

std::vector<double> sorted_copy(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  if (!std::ranges::all_of(sorted, [](double x) { return std::isfinite(x); })) {
    fail(ErrorKind::internal, "summary: a sample is not a finite number");
  }
  std::ranges::sort(sorted);
  return sorted;
}

double median_deviation(std::span<const double> samples, double centre) {
  std::vector<double> deviations(samples.size());
  std::ranges::transform(samples, deviations.begin(),
                         [centre](double x) { return std::abs(x - centre); });
  return median(std::move(deviations));
}

double relative(double mad, double median) {
  return mad == 0 ? 0 : mad / std::abs(median); // x / 0 is infinity for doubles
}

} // namespace

double percentile(std::span<const double> sorted, double q) {
  if (!(q >= 0 && q <= 1)) {
    fail(ErrorKind::internal, "percentile: the quantile is outside [0, 1]");
  }
  if (sorted.empty()) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  if (below + 1 >= sorted.size()) {
    return sorted.back();
  }
  const double fraction = position - static_cast<double>(below);
  // Not (1 - f) a + f b: that form can leave [a, b] by rounding when a == b.
  return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

double quantile(std::vector<double> samples, double q) {
  std::ranges::sort(samples);
  return percentile(samples, q);
}

double median(std::vector<double> samples) {
  return samples.empty() ? 0 : quantile(std::move(samples), 0.5);
}

Summary summarize(std::span<const double> samples) {
  if (samples.empty()) {
    return {};
  }
  const std::vector<double> sorted = sorted_copy(samples);
  Summary s{.n = sorted.size(),
            .min = sorted.front(),
            .p50 = percentile(sorted, 0.5),
            .p99 = percentile(sorted, 0.99),
            .max = sorted.back()};
  s.mad = median_deviation(sorted, s.p50);
  s.spread = relative(s.mad, s.p50);
  return s;
}

Summary summarize_rate(std::span<const double> seconds, double bytes) {
  if (seconds.empty()) {
    return {};
  }
  const std::vector<double> sorted = sorted_copy(seconds);
  if (!(sorted.front() > 0)) {
    fail(ErrorKind::internal, "summary of a rate: a time is not above 0");
  }
  Summary s{.n = sorted.size(),
            .min = bytes / sorted.back(),
            .p50 = bytes / percentile(sorted, 0.5),
            .p99 = bytes / percentile(sorted, 0.99),
            .max = bytes / sorted.front()};
  std::vector<double> rates(sorted.size());
  std::ranges::transform(sorted, rates.begin(), [bytes](double t) { return bytes / t; });
  s.mad = median_deviation(rates, s.p50);
  s.spread = relative(s.mad, s.p50);
  return s;
}

} // namespace reckon
