// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/paths.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// From one endpoint to another.
using EndpointPair = std::pair<std::string, std::string>;

/// What to let run at once to see how much a link carries.
struct LinkQuestion {
  LinkEnd link;
  std::vector<EndpointPair> pairs; ///< two or more of those that pass it
};

/// A question for each link. The pairs of one have as few endpoints in common as possible, so that
/// it is the link and not an end that they meet at: no endpoint occurs twice, or else none twice as
/// source and none twice as destination, or else only one of the two holds. Same input, same
/// questions.
[[nodiscard]] std::vector<LinkQuestion> link_questions(const std::vector<SharedLink>& links);

/// Lets these pairs move bytes at the same time and returns for each the bytes per second that
/// arrived in window after window; window i is the same stretch of time for all of them.
using MeasureTogether =
    std::function<std::vector<std::vector<double>>(const std::vector<EndpointPair>& pairs)>;

enum class LinkVerdict {
  limits,  ///< together they get less than each alone, and this link is why: the rate is its
           ///< capacity
  carries, ///< something else limits, if anything: its capacity is the rate or more
  unclear, ///< together they get less, and the measurements do not tell which link is why
};

/// What became of a question.
struct LinkFinding {
  LinkEnd link;
  std::vector<EndpointPair> pairs;
  LinkVerdict verdict = LinkVerdict::unclear;
  std::vector<double> together; ///< bytes per second over the link, of all pairs, window by window
  double alone = 0;             ///< sum of what the pairs get alone, by medians
  /// Links that the same bytes pass in all measurements: the thinnest of them and `link` limits.
  std::vector<LinkEnd> in_series;
  /// "2 pairs at once 10.2 GB/s, alone 19.8 GB/s; ..."
  [[nodiscard]] std::string text() const;
};

/// Solo against together (shared-link discovery): measures every pair of the questions alone, then
/// the pairs of each question at once, and explains what they lose.
///
/// A pair that gets less than alone passes a link that is full. Full can only be a link that two of
/// the pairs share and that nowhere carried more. Where that leaves one link, it is the reason and
/// its load its capacity; a link found so explains other measurements in which it is full again.
/// Assumes what holds for PCIe, memory and networks alike: that a pair which meets no full link
/// runs as fast as alone.
[[nodiscard]] std::vector<LinkFinding> find_shared_links(const std::vector<SharedLink>& links,
                                                         const MeasureTogether& measure);

} // namespace reckon
