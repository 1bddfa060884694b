// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

using PairOfPlaces = std::pair<std::string, std::string>;

/// What two places that are alike reached together: machines, or NICs as "MACHINE/NAME".
struct PairRate {
  std::string a, b;
  double rate = 0; ///< more is better
};

/// A place or a path that may be why pairs are slow.
struct Suspect {
  std::string a, b; ///< b is empty for a place; else the path between a and b
  double rate = 0;  ///< the best that it reached
  bool certain = false;
  std::vector<std::string> with; ///< of a place: the other ends of the slow pairs that point to it
};

struct PairVerdict {
  double expected = 0;            ///< rate of a pair without a fault
  std::vector<Suspect> suspects;  ///< the certain ones first, places before paths
  std::vector<PairOfPlaces> next; ///< to be measured to be certain
  /// Half of the places are slow, or each has a slow path: they are built so, and no suspects.
  bool differ = false;
};

/// The rate of a pair without a fault: the median of those that are near the highest. `tolerance`:
/// a part of it that is noise.
[[nodiscard]] double healthy_rate(const std::vector<PairRate>& pairs, double tolerance);

/// (61) Which places or paths make pairs slow, if a pair reaches the least of its two places and
/// the path between them:
/// - an end of a slow pair is cleared if it reaches more with others: more than half of what lacks;
/// - a slow pair points to the end that is not cleared, if the other is; to the path, if both are;
/// - a place is certain when pairs with two others point to it. Two bad paths that meet there look
///   the same; several pairs slow at one machine are taken for the machine's fault.
/// A place that was measured with slow ones only is a suspect, too. At least one pair must be
/// without a fault. Pairs may be given several times, the slowest counts.
[[nodiscard]] PairVerdict judge_pairs(const std::vector<PairRate>& pairs, double tolerance);

/// Pairs by rounds: those of a round share no machine.
[[nodiscard]] std::vector<std::vector<PairOfPlaces>>
rounds_of(const std::vector<PairOfPlaces>& pairs);

} // namespace reckon
