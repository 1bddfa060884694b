// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "network/network.hpp"

#include <cstddef>
#include <vector>

namespace reckon {

struct CanonicalNetwork {
  Network network;
  /// By number in the given network: the number in `network`.
  std::vector<std::size_t> place_now, machine_now;
};

/// The same network with its machines, places, stations and nodes in an order that depends only on
/// their properties (rates, ways, sums, roles), not on names and numbers. Workers stay first, and
/// the workers of one machine, and its other places, stay together. Networks that differ in names
/// and numbers only become equal except for names, so that ties by number are broken alike.
///
/// Colours are refined until equal ones are alike. Where places remain that nothing distinguishes,
/// each of the smallest class is tried, and the one with the least signature goes first. In
/// networks of hundreds of places, where so many trials take too long, the first of the class goes
/// first; the result is the same unless places are alike in all their ways, and in the ways that
/// these lead to, and still are not symmetric.
[[nodiscard]] CanonicalNetwork canonical_order(Network network);

} // namespace reckon
