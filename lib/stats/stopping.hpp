// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <cstddef>
#include <vector>

namespace reckon {

/// What ended a measurement.
enum class StopReason {
  running,    ///< nothing yet
  precise,    ///< the median is known with the wanted precision
  stabilised, ///< the median no longer moves, though the samples are too noisy for the precision
  budget,     ///< out of time or samples first: the result deserves a warning
};

/// When a measurement has enough samples.
struct StoppingLimits {
  std::size_t min_samples = 10;
  Seconds min_time{0.2};
  /// Wanted half-width of the 95 % interval of the median, relative to the median.
  double precision = 0.01;
  /// Hard limit for one cell; ends it whatever the number of samples.
  Seconds budget{5.0};
  /// Hard limit that keeps the memory of a cell of fast samples small.
  std::size_t max_samples = 100'000;
};

/// Stops when the median's distribution-free 95 % interval (order statistics n/2 +- 0.98 sqrt(n))
/// is narrow enough; or when the medians at the last three looks, each look with half as many
/// samples again as the one before, lie within `precision` of each other; or when the budget is
/// gone. Between looks add() costs O(1), so that all looks together cost O(n). It never reads a
/// clock, so a test can play any history. Thread-compatible.
class MedianStoppingRule {
public:
  explicit MedianStoppingRule(StoppingLimits limits = {});
  /// Takes one more sample (any unit); `elapsed` is the time since the cell began, warm-up not
  /// counted.
  void add(double sample, Seconds elapsed);
  [[nodiscard]] bool done() const { return m_reason != StopReason::running; }
  [[nodiscard]] StopReason reason() const { return m_reason; }

private:
  void look();

  StoppingLimits m_limits;
  std::vector<double> m_samples;
  std::vector<double> m_medians; ///< one for each look
  std::size_t m_next_look = 0;
  StopReason m_reason = StopReason::running;
};

} // namespace reckon
