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

/// Two trees over a model's endpoints with one root, as in SumTree, and the way from the root to
/// the network. The half that the model's collective does not use is the root alone.
struct Tree {
  std::vector<std::int64_t>
      up; ///< by endpoint: the parent that it hands its sum to; the root: itself; or -1
  std::vector<std::int64_t>
      down;             ///< by endpoint: the parent that gives it the sum; the root: itself; or -1
  std::size_t exit = 0; ///< index in model.exits[root]
  bool operator==(const Tree&) const = default;
};

[[nodiscard]] std::size_t root_of(const Tree& tree);

/// Reduces the half that the model's collective does not use to the root alone.
void halve(const Network& model, Tree& tree);

/// Whether a copy between a place and its parent uses the way back as well. A switch that sums
/// (NVLink SHARP) takes what all give, also what the worker gives that asks for the sum, and gives
/// what it multicasts to all, also to the worker that it is from (equation 59).
[[nodiscard]] bool goes_both_ways(const Network& model, std::size_t place, std::size_t parent);

/// Whether both trees lead to one root with this exit, hold every worker that the collective uses,
/// and make only possible copies.
[[nodiscard]] bool is_possible(const Network& model, const Tree& tree);

/// By resource: bytes for each byte of the gradient when all of it takes this tree, without the
/// background. A relay that c others hand their sums to adds c - 1 times, a worker c times; a
/// switch's sum has the worker's own in it.
[[nodiscard]] std::vector<double> loads_of(const Network& model, const Tree& tree);

/// Cost of the whole gradient on this tree, when a byte through station s costs prices[s].
[[nodiscard]] double cost_of(const Network& model, const Tree& tree,
                             const std::vector<double>& prices);

/// The cheapest way out of the machine at a root, as index in model.exits[root]; infinite without a
/// way.
struct PricedExit {
  std::size_t exit = 0;
  double cost = std::numeric_limits<double>::infinity();
};
[[nodiscard]] PricedExit cheapest_exit(const Network& model, std::size_t root,
                                       const std::vector<double>& prices);

/// By place: how many hand it their sums, or get theirs from it.
[[nodiscard]] std::vector<std::size_t> children_of(const std::vector<std::int64_t>& parents);

/// Removes places that are no workers and hand nothing to anyone, which never costs anything; of
/// one half, and of both.
void prune_leaves(const Network& model, std::vector<std::int64_t>& parents, std::size_t root);
void prune(const Network& model, Tree& tree);

/// The cheapest trees that reach all nodes, from every root at once: nodes are contracted until one
/// is left (Edmonds 1967, Tarjan 1977), which is the same for all roots. O(n^2); each tree takes
/// O(n) more.
class Arborescences {
public:
  /// cost[p n + v] is the cost of p as the parent of v; infinite where that is impossible, and
  /// possibly negative. A free node need not be reached: it is a parent at no cost.
  Arborescences(std::vector<double> cost, std::vector<char> free);

  /// Infinite where not all nodes can be reached.
  [[nodiscard]] double cost(std::size_t root) const { return m_cost[root]; }
  /// The root's parent is itself, and so is that of free nodes that nothing reaches.
  [[nodiscard]] std::vector<std::size_t> parents(std::size_t root) const;

private:
  /// One node, or several contracted ones, with the cheapest way in from outside.
  struct Group {
    std::size_t within; ///< number of the group that it was contracted into; itself
    double least = 0;   ///< of the way in, less the cost of the inner nodes that it replaces
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
  /// By place: a bound on all trees with the root there; infinite where no tree exists.
  std::vector<double> least;
};

/// The cheapest trees with each root that the collective has, when a byte through station s costs
/// prices[s] >= 0; only trees that cost less than `below`, which is by place, and one of several
/// alike roots. Places that only sum are tried by branch and bound, each free to use at first. If
/// the search ends early, `least` is below the cost of the tree, or there is no tree.
[[nodiscard]] CheapestTrees cheapest_trees(const Network& network,
                                           const std::vector<double>& prices,
                                           const std::vector<double>& below = {},
                                           double steps = 3e6);

} // namespace reckon
