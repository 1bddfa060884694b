// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/build.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// Tells changes of measured quantities from noise, all of one comparison together, since more
/// tests find more chance changes. A quantity differs when its median moved beyond the tolerance
/// and beyond `least_spreads` spreads, and the rank test, corrected for the number of quantities,
/// rejects that both sets of samples come from one distribution. A disturbed quantity has no usable
/// spread: its median and the fast end of its samples have to move by more than `noisy_tolerance`,
/// because other programs can only slow a machine down, and seldom all the time.
class Measured {
public:
  explicit Measured(Builder& out) : m_out(out) {}
  struct Evidence {
    std::span<const double> before, after; ///< samples
    double spread = 0;                     ///< the larger of the two documents'
    double tolerance = 0;
    bool rate = false;     ///< the samples are rates, so that the fast end is the high one
    bool doubtful = false; ///< the probe marked it as disturbed
    bool crowded = false;  ///< other programs used part of the processors that it needs
    std::size_t least = 0; ///< samples on either side
    /// Quantities of one name with too few samples are tested together, each relative to its own
    /// medians. Empty: alone or not at all.
    std::string together{};
  };
  /// `difference` has the two medians as its sides; it is reported if the test confirms it. The
  /// samples must stay valid until settle().
  void add(Difference difference, const Evidence& evidence);
  /// Tests them all and puts differences and undecided quantities into the builder. Returns how
  /// many differ.
  std::size_t settle();

private:
  struct Candidate {
    Difference difference;
    Evidence evidence;
    std::optional<double> p;
    bool pooled = false;
    bool beyond_tolerance = false;
  };
  void pool();
  void judge(Candidate& candidate, std::size_t tests, std::size_t& differing);
  [[nodiscard]] bool fast_end_moved(const Candidate& candidate) const;

  Builder& m_out;
  std::vector<Candidate> m_candidates;
};

} // namespace reckon
