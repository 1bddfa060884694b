// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/job.hpp"
#include "stats/stopping.hpp"

#include <cstdint>
#include <optional>

namespace reckon {

/// How many iterations a job makes, and which of them count. It reads no clock.
class IterationCount {
public:
  /// `first`: steps made before this run. Throws Error{input} when these are all that the options
  /// ask for.
  IterationCount(const RunOptions& options, std::uint64_t first);

  /// Iterations that do not count. Of the iterations that are left at least one counts.
  [[nodiscard]] std::uint32_t warm_up() const { return m_warm_up; }
  /// Whether an iteration counts; they are numbered from `first` on.
  [[nodiscard]] bool counts(std::uint64_t iteration) const {
    return iteration >= m_first + m_warm_up;
  }
  /// Whether there is a pause before it, after so many (0: none) that count.
  [[nodiscard]] bool pauses(std::uint64_t iteration, std::uint32_t every) const;
  /// The seconds of one that counts, and the time since the first one began: RunOptions::budget
  /// bounds that, filling and checking included.
  void add(double seconds, Seconds elapsed);
  /// No more are needed.
  [[nodiscard]] bool enough() const;

private:
  std::uint64_t m_first;
  std::uint32_t m_warm_up;
  std::optional<std::uint64_t> m_wanted; ///< absent: as many as the rule wants
  std::uint64_t m_counted = 0;
  MedianStoppingRule m_rule;
};

} // namespace reckon
