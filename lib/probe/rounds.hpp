// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

namespace reckon {

/// A rank as an index.
[[nodiscard]] inline std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

/// Pairs of ranks that share no rank, so that all of them can be measured at once.
using Pairing = std::vector<std::pair<int, int>>;

/// Every pair of `ranks` ranks (at least 2) exactly once, in as few rounds of disjoint pairs as
/// there can be: ranks - 1, or `ranks` with one rank idle in each when their number is odd (the
/// circle method: one rank stands, the others walk around it). The lower rank is first in a pair.
[[nodiscard]] std::vector<Pairing> round_robin(int ranks);

/// Two halves of the ranks, each rank of one paired with one of the other; with an odd number one
/// rank is left out. Pair i goes from half to half in the order of `order`: its first half against
/// its second.
[[nodiscard]] Pairing halves_of(const std::vector<int>& order);
/// The ranks 0 to `ranks` - 1 in an order drawn from `random`.
[[nodiscard]] std::vector<int> shuffled(int ranks, std::mt19937_64& random);

/// `pairs` in order, cut into waves in which each host has at most `most` pairs that touch it:
/// otherwise ranks of one computer would wait for its processors and not for the network.
/// host_of[rank]. A pair inside one host counts once.
[[nodiscard]] std::vector<Pairing> waves_of(const Pairing& pairs, const std::vector<int>& host_of,
                                            int most);

/// `ranks` cut into stars of neighbours in the list, as equal in size as possible: of `size` ranks
/// each, up to one less than twice that. In turn each member is the hub and the others send to it
/// or receive from it, in all stars at once, so that the number of rounds does not grow with the
/// number of ranks.
[[nodiscard]] std::vector<std::vector<int>> stars_of(const std::vector<int>& ranks, int size);

} // namespace reckon
