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

/// The cheapest trees that reach all nodes, from every root at once: nodes are contracted until one
/// is left (Edmonds 1967, Tarjan 1977), which is the same for all roots. O(n^2); a tree takes O(n)
/// more.
class Arborescences {
public:
  /// cost[p n + v] is that of p being the parent of v, infinite where it cannot be, and may be
  /// negative. A node that is free need not be reached: it is a parent at no cost.
  Arborescences(std::vector<double> cost, std::vector<char> free);

  /// Infinite where not all nodes can be reached.
  [[nodiscard]] double cost(std::size_t root) const { return m_cost[root]; }
  /// The root's is itself, and so is that of free nodes that nothing reaches.
  [[nodiscard]] std::vector<std::size_t> parents(std::size_t root) const;

private:
  /// A node, or several that were contracted, with the cheapest way in from outside.
  struct Group {
    std::size_t within; ///< number of the group it was contracted into; itself
    double least = 0;   ///< of the way in, less what the nodes of it that it replaces cost
    std::size_t from, to;
  };
  std::size_t m_nodes;
  std::vector<Group> m_groups; ///< nodes first
  std::vector<double> m_cost;  ///< by root
};

struct PricedTree {
  Tree tree;
  double cost = std::numeric_limits<double>::infinity();
};

struct CheapestTrees {
  std::vector<PricedTree> trees; ///< at most one for each root, in order
  /// By place: no tree with its root there costs less; infinite where there is none.
  std::vector<double> least;
};

/// The cheapest trees with each root that the collective has, when a byte through station s costs
/// prices[s] >= 0; of trees that cost less than `below`, which is by place, and of one root of
/// those that are alike. Places that only sum are tried by branch and bound, each free to use at
/// first: where that does not end, `least` is lower than the cost of the tree, or there is none.
[[nodiscard]] CheapestTrees cheapest_trees(const Network& network,
                                           const std::vector<double>& prices,
                                           const std::vector<double>& below = {},
                                           double steps = 3e6);

} // namespace reckon
