// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <string>
#include <vector>

namespace reckon {

/// The allowed excess of a rate over another one that it passes: both have noise.
inline constexpr double k_above_noise = 0.05;

/// A rate above the limit of its way: one of the two is wrong, mostly `limit`, measured with too
/// little in flight or before connections had reached their speed.
struct Contradiction {
  const Cell* cell = nullptr; ///< cell of the higher rate, in the profile
  double limit = 0;           ///< bytes per second
  std::string limited_by;     ///< "the port of w1", "the ports inside"
};

/// In a profile of a cluster, beyond k_above_noise: pairs, both ways at once, above the rate of one
/// end to several peers; halves against each other above the ports of their pairs; uplinks above
/// the ports inside their racks; and a machine's port above its network ports together. In the
/// order of the cells. Points into `profile`.
[[nodiscard]] std::vector<Contradiction> contradictions_of(const Profile& profile);

} // namespace reckon
