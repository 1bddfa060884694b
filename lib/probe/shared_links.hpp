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

/// The pairs to run at once to find the capacity of a link.
struct LinkQuestion {
  LinkEnd link;
  std::vector<EndpointPair> pairs; ///< two or more of the pairs that pass it
};

/// A question for each link. Its pairs have as few endpoints in common as possible, so that they
/// meet at the link and not at an end: no endpoint occurs twice, or else no endpoint twice as
/// source and none twice as destination, or else only one of the two holds. Same input, same
/// questions.
[[nodiscard]] std::vector<LinkQuestion> link_questions(const std::vector<SharedLink>& links);

/// Runs these pairs at the same time and returns for each the bytes per second that arrived in
/// window after window; window i is the same stretch of time for all of them.
using MeasureTogether =
    std::function<std::vector<std::vector<double>>(const std::vector<EndpointPair>& pairs)>;

enum class LinkVerdict {
  limits,  ///< together they get less than each alone, and this link is why: the rate is its
           ///< capacity
  carries, ///< something else limits, if anything: its capacity is the rate or more
  unclear, ///< together they get less, and the measurements do not tell which link is why
};

/// The answer to a question.
struct LinkFinding {
  LinkEnd link;
  std::vector<EndpointPair> pairs;
  LinkVerdict verdict = LinkVerdict::unclear;
  std::vector<double> together; ///< bytes per second over the link, of all pairs, window by window
  double alone = 0;             ///< sum of the pairs' rates alone, by medians
  /// Links that the same bytes pass in all measurements: the thinnest of them and `link` limits.
  std::vector<LinkEnd> in_series;
  /// "2 pairs at once 10.2 GB/s, alone 19.8 GB/s; ..."
  [[nodiscard]] std::string text() const;
};

/// Solo against together (shared-link discovery): measures every pair of the questions alone, then
/// the pairs of each question at once, and explains their losses.
///
/// A pair that gets less than alone passes a full link. Only a link that two of the pairs share and
/// that nowhere carried more can be full. If exactly one link remains, it is the reason and its
/// load its capacity; it explains other measurements in which it is full again. Assumes, for PCIe,
/// memory and networks alike, that a pair without a full link runs as fast as alone.
[[nodiscard]] std::vector<LinkFinding> find_shared_links(const std::vector<SharedLink>& links,
                                                         const MeasureTogether& measure);

} // namespace reckon
