// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "network/network.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// Two trees over a model's endpoints with one root, as SumTree has them, and the way from the root
/// to the network. The half that the model's collective has no use for is the root alone.
struct Tree {
  std::vector<std::int64_t> up; ///< by endpoint: whom it hands its sum to; the root: itself; or -1
  std::vector<std::int64_t> down; ///< by endpoint: who gives it the sum; the root: itself; or -1
  std::size_t exit = 0;           ///< of model.exits[root]
  bool operator==(const Tree&) const = default;
};

[[nodiscard]] std::size_t root_of(const Tree& tree);

/// Makes the half that the model's collective has no use for the root alone.
void halve(const Network& model, Tree& tree);

/// Whether both trees lead to one root that has such an exit, hold every worker as far as the
/// collective uses them, and make only copies that can be made.
[[nodiscard]] bool is_possible(const Network& model, const Tree& tree);

/// By resource: bytes for each byte of the gradient when all of it goes this way; without what
/// passes anyway. A relay that c others hand their sums to adds c - 1 times, a worker c times.
[[nodiscard]] std::vector<double> loads_of(const Network& model, const Tree& tree);

/// Of all of the gradient by this tree, when a byte through station s costs prices[s].
[[nodiscard]] double cost_of(const Network& model, const Tree& tree,
                             const std::vector<double>& prices);

/// The way out of the machine that costs least at a root, of model.exits[root]; infinite without.
struct PricedExit {
  std::size_t exit = 0;
  double cost = std::numeric_limits<double>::infinity();
};
[[nodiscard]] PricedExit cheapest_exit(const Network& model, std::size_t root,
                                       const std::vector<double>& prices);

/// Endpoints that hand nothing to anyone although they are no workers are taken out of the trees,
/// which never costs anything.
void prune(const Network& model, Tree& tree);

/// Parents of the cheapest tree that reaches all nodes from `root` (Chu and Liu 1965, Edmonds
/// 1967); cost[p][v] is that of p being the parent of v, infinite where it cannot be. Costs may be
/// negative. parent[root] is root. Empty when no tree reaches all. O(n^3).
[[nodiscard]] std::vector<std::size_t>
cheapest_arborescence(const std::vector<std::vector<double>>& cost, std::size_t root);

struct PricedTree {
  Tree tree;
  double cost = std::numeric_limits<double>::infinity();
};

/// Which places that only sum are looked at as members of a tree.
enum class Relays {
  every_choice, ///< exact; exponential in their number
  none,         ///< exact where there are none
};

/// The cheapest trees of all with each root that the collective has, when a byte through resource r
/// costs prices[r] >= 0. A root that reaches no worker has no entry.
[[nodiscard]] std::vector<PricedTree> cheapest_trees(const Network& model,
                                                     const std::vector<double>& prices,
                                                     Relays relays = Relays::every_choice);

} // namespace reckon
