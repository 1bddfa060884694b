// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/forest/trees.hpp"

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace reckon {

inline constexpr double k_never = std::numeric_limits<double>::infinity();

/// The cheapest trees whose lower half mirrors the upper one, when a byte through station s costs
/// prices[s] >= 0. These trees load each of their links in both directions, so the cheapest is an
/// undirected spanning tree (Prim), and its root can be chosen afterwards. Places that only sum
/// join it, or leave it, one by one as long as that makes it cheaper.
class Spanning {
public:
  Spanning(const Network& network, const std::vector<double>& prices);

  /// A cheapest tree, shallow among equals, grown from place `start` (modulo their number), rooted
  /// where the longest way to the root is the shortest. nullopt where no tree joins all workers.
  [[nodiscard]] std::optional<Tree> tree(std::size_t start) const;

private:
  struct Grown {
    double cost = 0;
    std::vector<std::size_t> parent; ///< by member
  };
  [[nodiscard]] Grown grow(const std::vector<std::size_t>& members, std::size_t start) const;
  void choose_relays();

  const Network& m_network;
  const std::vector<double>& m_prices;
  std::size_t m_places;
  /// [u n + v]: there and back, and a sum at each end; infinite where no copy is possible.
  std::vector<double> m_both;
  std::vector<double> m_add;          ///< by place
  std::vector<std::size_t> m_members; ///< workers and the relays that make the cheapest tree
  double m_tie = 0;
  bool m_sums_cost = false;
};

} // namespace reckon
