// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/job.hpp"
#include "stats/stopping.hpp"

#include <cstdint>
#include <optional>

namespace reckon {

/// The number of a job's iterations, and which of them count. It reads no clock.
class IterationCount {
public:
  /// `first`: steps made before this run. Throws Error{input} when the options ask for no more than
  /// these.
  IterationCount(const RunOptions& options, std::uint64_t first);

  /// Iterations that do not count. At least one of the remaining iterations counts.
  [[nodiscard]] std::uint32_t warm_up() const { return m_warm_up; }
  /// Whether an iteration counts; they are numbered from `first` on.
  [[nodiscard]] bool counts(std::uint64_t iteration) const {
    return iteration >= m_first + m_warm_up;
  }
  /// Whether a pause precedes it, after this many counted ones (0: no pauses).
  [[nodiscard]] bool pauses(std::uint64_t iteration, std::uint32_t every) const;
  /// Takes the seconds of a counted iteration, and the time since the first one began, which
  /// RunOptions::budget bounds, filling and checking included.
  void add(double seconds, Seconds elapsed);
  /// No more iterations are needed.
  [[nodiscard]] bool enough() const;

private:
  std::uint64_t m_first;
  std::uint32_t m_warm_up;
  std::optional<std::uint64_t> m_wanted; ///< absent: until the rule is satisfied
  std::uint64_t m_counted = 0;
  MedianStoppingRule m_rule;
};

} // namespace reckon
