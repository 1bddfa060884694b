// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reckon {

/// The way of summing a part of the gradient in the rings of a torus. Dimensions are 0 local, 1
/// vertical, 2 horizontal; each stands once in one of the two lists.
struct TorusWay {
  /// In this order the rings of each dimension make sums that one node keeps, the one at the place
  /// of the part's server; in the opposite order it hands the whole sum to the others.
  std::vector<std::size_t> scatter;
  std::vector<std::size_t> sum; ///< in between: rings after which all of their nodes have the sum
  bool backward = false;        ///< direction round all these rings
  bool operator==(const TorusWay&) const = default;
};

/// The ranks are the nodes of a torus, rank l + L (v + V h), and write to their neighbours only.
struct TorusPlan {
  std::array<std::uint64_t, 3> shape{1, 1, 1}; ///< L, V, H: as many nodes as the plan has ranks
  std::vector<TorusWay> ways;                  ///< parts.tree numbers them
  bool operator==(const TorusPlan&) const = default;
};

} // namespace reckon
