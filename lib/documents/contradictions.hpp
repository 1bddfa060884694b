// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <string>
#include <vector>

namespace reckon {

/// By so much one rate may be above another that it passes: both have their noise.
inline constexpr double k_above_noise = 0.05;

/// A rate that is more than what it passes can carry: one of the two is wrong, and mostly it is
/// `limit`, measured with too little in flight or before connections had found their speed.
struct Contradiction {
  const Cell* cell = nullptr; ///< of the higher rate, in the profile
  double limit = 0;           ///< bytes per second
  std::string limited_by;     ///< "the port of w1", "the ports inside"
};

/// In a profile of a cluster, beyond k_above_noise: pairs, both ways at once, above what one end
/// gives to several peers or the other takes from several; halves against each other above the
/// ports of their pairs; uplinks above the ports inside of their racks; and a machine's port above
/// the network ports of which it is made. In the order of the cells. Points into `profile`.
[[nodiscard]] std::vector<Contradiction> contradictions_of(const Profile& profile);

} // namespace reckon
