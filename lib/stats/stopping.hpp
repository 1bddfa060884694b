// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace reckon {

/// What ended a measurement.
enum class StopReason {
  running,    ///< nothing yet
  precise,    ///< the median is known as well as was asked for
  stabilised, ///< the median no longer moves, though the samples are too noisy to be precise
  budget,     ///< out of time or samples first: the result deserves a warning
};
[[nodiscard]] std::string_view name_of(StopReason reason);

/// Decides when a measured cell has enough samples. It never reads a clock: the caller says how
/// much time has gone, so that a test can play any history. Thread-compatible.
class StoppingRule {
public:
  StoppingRule() = default;
  StoppingRule(const StoppingRule&) = delete;
  StoppingRule& operator=(const StoppingRule&) = delete;
  virtual ~StoppingRule() = default;

  /// Forgets all samples: one rule serves one cell after another.
  virtual void reset() = 0;
  /// Takes one more sample (any unit); `elapsed` is the time since the cell began, warm-up not
  /// counted.
  virtual void add(double sample, Seconds elapsed) = 0;
  [[nodiscard]] virtual bool done() const = 0;
  /// `running` exactly while done() is false.
  [[nodiscard]] virtual StopReason reason() const = 0;
};

/// What "enough" means (measuring.md rule 7).
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
/// is narrower than asked; or when the medians at the last three looks, each look having half as
/// many samples again as the one before, lie within `precision` of each other; or when the budget
/// is gone. Between looks add() costs O(1), so that all looks together cost O(n).
class MedianStoppingRule final : public StoppingRule {
public:
  explicit MedianStoppingRule(StoppingLimits limits = {});
  void reset() override;
  void add(double sample, Seconds elapsed) override;
  [[nodiscard]] bool done() const override { return m_reason != StopReason::running; }
  [[nodiscard]] StopReason reason() const override { return m_reason; }

private:
  void look();

  StoppingLimits m_limits;
  std::vector<double> m_samples;
  std::vector<double> m_medians; ///< one for each look
  std::size_t m_next_look = 0;
  StopReason m_reason = StopReason::running;
};

/// Takes exactly `count` samples: for tests and for `--iterations N`. Ends with `precise`, as
/// nothing was cut off.
class FixedCountRule final : public StoppingRule {
public:
  explicit FixedCountRule(std::size_t count) : m_count(count) {}
  void reset() override { m_taken = 0; }
  void add(double /*sample*/, Seconds /*elapsed*/) override { ++m_taken; }
  [[nodiscard]] bool done() const override { return m_taken >= m_count; }
  [[nodiscard]] StopReason reason() const override {
    return done() ? StopReason::precise : StopReason::running;
  }

private:
  std::size_t m_count;
  std::size_t m_taken = 0;
};

} // namespace reckon
