// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/build.hpp"

#include <optional>
#include <span>
#include <vector>

namespace reckon {

/// Tells changes of measured quantities from noise, all of one comparison together, since the more
/// are tested the more look changed by chance. A quantity differs when its median moved beyond the
/// tolerance and beyond `least_spreads` spreads, and the rank test, corrected for the number of
/// quantities, rejects that both sets of samples come from one distribution.
class Measured {
public:
  explicit Measured(Builder& out) : m_out(out) {}
  struct Evidence {
    std::span<const double> before, after; ///< samples
    double spread = 0;                     ///< the larger of the two documents'
    double tolerance = 0;
    bool doubtful = false; ///< the probe itself says that something disturbed it
  };
  /// `difference` has the two medians as its sides; it is reported if it proves to be one.
  void add(Difference difference, const Evidence& evidence);
  /// Tests them all and puts what differs, and what could not be decided, into the builder. Returns
  /// how many differ.
  std::size_t settle();

private:
  struct Candidate {
    Difference difference;
    std::optional<double> p;
    bool beyond_tolerance = false;
    bool beyond_spread = false;
    bool believable = true;
  };
  Builder& m_out;
  std::vector<Candidate> m_candidates;
};

} // namespace reckon
