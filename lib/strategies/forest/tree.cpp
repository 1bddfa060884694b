// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/trees.hpp"

#include <numeric>
#include <utility>

namespace reckon {
namespace {

/// Every entry of the tree leads to the root, over copies that exist.
template <class Possible>
bool leads_to_root(const std::vector<std::int64_t>& parents, std::size_t root,
                   const Possible& possible) {
  for (std::size_t v = 0; v < parents.size(); ++v) {
    std::size_t at = v;
    for (std::size_t steps = 0; parents[v] >= 0 && at != root; ++steps) {
      if (parents[at] < 0 || steps == parents.size()) {
        return false;
      }
      const auto next = static_cast<std::size_t>(parents[at]);
      if (next >= parents.size() || !possible(at, next)) {
        return false;
      }
      at = next;
    }
  }
  return true;
}

} // namespace

bool goes_both_ways(const Network& model, std::size_t place, std::size_t parent) {
  return model.places[place].link_switch && model.places[parent].worker;
}

std::vector<std::size_t> children_of(const std::vector<std::int64_t>& parents) {
  std::vector<std::size_t> children(parents.size(), 0);
  for (std::size_t v = 0; v < parents.size(); ++v) {
    if (parents[v] >= 0 && static_cast<std::size_t>(parents[v]) != v) {
      ++children[static_cast<std::size_t>(parents[v])];
    }
  }
  return children;
}

void prune_leaves(const Network& model, std::vector<std::int64_t>& parents, std::size_t root) {
  for (bool again = true; again;) {
    again = false;
    const std::vector<std::size_t> children = children_of(parents);
    for (std::size_t v = model.workers; v < parents.size(); ++v) {
      if (v != root && parents[v] >= 0 && children[v] == 0) {
        parents[v] = -1;
        again = true;
      }
    }
  }
}

std::size_t root_of(const Tree& tree) {
  for (std::size_t v = 0; v < tree.up.size(); ++v) {
    if (tree.up[v] == static_cast<std::int64_t>(v)) {
      return v;
    }
  }
  return tree.up.size();
}

void halve(const Network& model, Tree& tree) {
  const std::size_t root = root_of(tree);
  for (const auto& [used, parents] : {std::pair(sums(model.collective), &tree.up),
                                      std::pair(gives(model.collective), &tree.down)}) {
    if (!used) {
      parents->assign(parents->size(), -1);
      parents->at(root) = static_cast<std::int64_t>(root);
    }
  }
}

bool is_possible(const Network& model, const Tree& tree) {
  const std::size_t n = model.places.size();
  if (tree.up.size() != n || tree.down.size() != n) {
    return false;
  }
  const std::size_t root = root_of(tree);
  if (root == n || tree.down[root] != static_cast<std::int64_t>(root) ||
      tree.exit >= model.exits[root].size()) {
    return false;
  }
  for (std::size_t v = 0; v < model.workers; ++v) {
    if ((tree.up[v] < 0 && sums(model.collective)) ||
        (tree.down[v] < 0 && gives(model.collective))) {
      return false;
    }
  }
  const auto up = [&](std::size_t v, std::size_t parent) {
    return v != parent && model.ways[v][parent].has_value();
  };
  const auto down = [&](std::size_t v, std::size_t parent) {
    return v != parent && model.ways[parent][v].has_value();
  };
  return leads_to_root(tree.up, root, up) && leads_to_root(tree.down, root, down);
}

std::vector<double> loads_of(const Network& model, const Tree& tree) {
  std::vector<double> loads(model.stations.size(), 0.0);
  const std::size_t root = root_of(tree);
  std::vector<std::size_t> children = children_of(tree.up);
  for (std::size_t v = 0; v < model.places.size(); ++v) {
    if (tree.up[v] >= 0 && v != root) {
      const auto parent = static_cast<std::size_t>(tree.up[v]);
      add_uses(loads, *model.ways[v][parent]);
      if (goes_both_ways(model, v, parent)) {
        add_uses(loads, *model.ways[parent][v]);
        --children[parent];
      }
    }
    if (tree.down[v] >= 0 && v != root) {
      const auto parent = static_cast<std::size_t>(tree.down[v]);
      add_uses(loads, *model.ways[parent][v]);
      if (goes_both_ways(model, v, parent)) {
        add_uses(loads, *model.ways[v][parent]);
      }
    }
  }
  for (std::size_t v = 0; v < model.places.size(); ++v) {
    const std::size_t own = model.places[v].worker ? 1 : 0;
    if (children[v] + own > 1) {
      add_uses(loads, model.add[v], static_cast<double>(children[v] + own - 1));
    }
  }
  add_uses(loads, model.exits[root][tree.exit].uses);
  return loads;
}

double cost_of(const Network& model, const Tree& tree, const std::vector<double>& prices) {
  const std::vector<double> loads = loads_of(model, tree);
  return std::inner_product(loads.begin(), loads.end(), prices.begin(), 0.0);
}

PricedExit cheapest_exit(const Network& model, std::size_t root,
                         const std::vector<double>& prices) {
  PricedExit best;
  for (std::size_t i = 0; i < model.exits[root].size(); ++i) {
    const double cost = cost_of(model.exits[root][i].uses, prices);
    if (cost < best.cost) {
      best = {i, cost};
    }
  }
  return best;
}

void prune(const Network& model, Tree& tree) {
  const std::size_t root = root_of(tree);
  prune_leaves(model, tree.up, root);
  prune_leaves(model, tree.down, root);
}

} // namespace reckon
