// SPDX-License-Identifier: Apache-2.0
#include "stats/stopping.hpp"

#include "stats/summary.hpp"

#include <algorithm>
#include <cmath>

namespace reckon {

MedianStoppingRule::MedianStoppingRule(StoppingLimits limits) : m_limits(limits) {
  // The interval below needs ranks on both sides of the median.
  m_limits.min_samples = std::max<std::size_t>(m_limits.min_samples, 6);
  m_next_look = m_limits.min_samples;
}

void MedianStoppingRule::add(double sample, Seconds elapsed) {
  m_samples.push_back(sample);
  if (m_samples.size() >= m_next_look && elapsed >= m_limits.min_time) {
    look();
  }
  if (m_reason == StopReason::running &&
      (elapsed >= m_limits.budget || m_samples.size() >= m_limits.max_samples)) {
    m_reason = StopReason::budget;
  }
}

void MedianStoppingRule::look() {
  std::vector<double> sorted = m_samples;
  std::ranges::sort(sorted);
  const std::size_t n = sorted.size();
  const double median = percentile(sorted, 0.5);
  // Number of samples on the outer side of each end: binomial(n, 1/2) at -1.96 sigma. n = 10 gives
  // the 2nd and the 9th sample (97.9 % by the exact binomial).
  const double outer = (static_cast<double>(n) - 1.96 * std::sqrt(static_cast<double>(n))) / 2;
  const auto lower = static_cast<std::size_t>(std::max(0.0, outer));
  const double half_width = (sorted[n - 1 - lower] - sorted[lower]) / 2;
  const double allowed = m_limits.precision * std::abs(median);
  m_medians.push_back(median);
  m_next_look = n + (n + 1) / 2;
  if (half_width <= allowed) {
    m_reason = StopReason::precise;
    return;
  }
  if (m_medians.size() >= 3) {
    const auto [lo, hi] = std::minmax_element(m_medians.end() - 3, m_medians.end());
    if (*hi - *lo <= allowed) {
      m_reason = StopReason::stabilised;
    }
  }
}

} // namespace reckon
