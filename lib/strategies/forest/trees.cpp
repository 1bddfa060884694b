// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/trees.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace reckon {
namespace {

constexpr double k_never = std::numeric_limits<double>::infinity();
/// Costs that differ by less are the same cost in another order of additions.
constexpr double k_tie = 1e-13;
constexpr std::size_t k_none = std::numeric_limits<std::size_t>::max();

using Costs = std::vector<std::vector<double>>;

std::vector<std::size_t> children_of(const std::vector<std::int64_t>& parents) {
  std::vector<std::size_t> children(parents.size(), 0);
  for (std::size_t v = 0; v < parents.size(); ++v) {
    if (parents[v] >= 0 && static_cast<std::size_t>(parents[v]) != v) {
      ++children[static_cast<std::size_t>(parents[v])];
    }
  }
  return children;
}

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

/// Searches the cheapest trees for one set of prices.
class Search {
public:
  Search(const Network& model, const std::vector<double>& prices, Relays relays)
      : m_model(model), m_relays(relays) {
    const std::size_t n = model.places.size();
    m_copy.assign(n, std::vector<double>(n, k_never));
    m_add.assign(n, 0.0);
    for (std::size_t u = 0; u < n; ++u) {
      for (std::size_t v = 0; v < n; ++v) {
        if (u != v && model.ways[u][v]) {
          m_copy[u][v] = cost_of(*model.ways[u][v], prices);
        }
      }
      m_add[u] = cost_of(model.add[u], prices);
    }
  }

  struct Found {
    std::vector<std::int64_t> parents;
    double cost = k_never;
  };

  [[nodiscard]] Found up(std::size_t root) {
    Found best;
    for_relays(root, [&](const std::vector<std::size_t>& members) {
      std::vector<std::size_t> forced(m_model.places.size(), k_none);
      branch(root, members, forced, best);
    });
    return best;
  }

  [[nodiscard]] Found down(std::size_t root) {
    Found best;
    for_relays(root, [&](const std::vector<std::size_t>& members) {
      Costs cost;
      for (const std::size_t p : members) {
        std::vector<double>& row = cost.emplace_back();
        for (const std::size_t v : members) {
          row.push_back(m_copy[p][v]);
        }
      }
      take(root, members, cost, 0.0, best);
    });
    return best;
  }

private:
  /// Calls with the workers, the root and every subset of the other relays.
  template <class Call>
  void for_relays(std::size_t root, const Call& call) const {
    std::vector<std::size_t> relays;
    for (std::size_t v = m_model.workers; v < m_model.places.size(); ++v) {
      if (v != root && m_relays == Relays::every_choice) {
        relays.push_back(v);
      }
    }
    for (std::size_t subset = 0; subset < (std::size_t{1} << relays.size()); ++subset) {
      std::vector<std::size_t> members;
      for (std::size_t v = 0; v < m_model.workers; ++v) {
        members.push_back(v);
      }
      if (root >= m_model.workers) {
        members.push_back(root);
      }
      for (std::size_t i = 0; i < relays.size(); ++i) {
        if ((subset >> i & 1U) != 0) {
          members.push_back(relays[i]);
        }
      }
      call(members);
    }
  }

  /// The arborescence over `members`, when it is cheaper than `best`. Returns whether it was, and
  /// leaves it in `found`.
  Found arborescence(std::size_t root, const std::vector<std::size_t>& members, const Costs& cost,
                     double fixed) const {
    const auto at =
        static_cast<std::size_t>(std::find(members.begin(), members.end(), root) - members.begin());
    const std::vector<std::size_t> parent = cheapest_arborescence(cost, at);
    Found found;
    if (parent.empty()) {
      return found;
    }
    found.parents.assign(m_model.places.size(), -1);
    found.cost = fixed;
    for (std::size_t v = 0; v < members.size(); ++v) {
      found.parents[members[v]] = static_cast<std::int64_t>(members[parent[v]]);
      found.cost += v == at ? 0.0 : cost[parent[v]][v];
    }
    return found;
  }

  void take(std::size_t root, const std::vector<std::size_t>& members, const Costs& cost,
            double fixed, Found& best) const {
    Found found = arborescence(root, members, cost, fixed);
    if (found.cost < best.cost) {
      best = std::move(found);
    }
  }

  /// A relay adds once less than it has children, so that its first stream is free. Counted as one
  /// off its edge to its parent, this is right for every relay with children, and too cheap for one
  /// without. Such a relay is made to have a child, each endpoint in turn; what it would cost to do
  /// without it is found with the smaller set of relays. A branch that already costs more than the
  /// best is given up: the count is never too dear.
  void branch(std::size_t root, const std::vector<std::size_t>& members,
              std::vector<std::size_t>& forced, Found& best) const {
    const std::size_t n = members.size();
    Costs cost(n, std::vector<double>(n, k_never));
    for (std::size_t v = 0; v < n; ++v) {
      for (std::size_t p = 0; p < n; ++p) {
        const std::size_t child = members[v];
        const std::size_t parent = members[p];
        if (forced[child] == k_none || forced[child] == parent) {
          cost[p][v] = m_copy[child][parent] + m_add[parent] -
                       (m_model.places[child].worker ? 0.0 : m_add[child]);
        }
      }
    }
    const double first = m_model.places[root].worker ? 0.0 : m_add[root];
    Found found = arborescence(root, members, cost, -first);
    if (!(found.cost < best.cost - k_tie * std::abs(best.cost == k_never ? 0 : best.cost))) {
      return;
    }
    const std::vector<std::size_t> children = children_of(found.parents);
    const auto idle = std::find_if(members.begin(), members.end(), [&](std::size_t v) {
      return !m_model.places[v].worker && v != root && children[v] == 0;
    });
    if (idle == members.end()) {
      best = std::move(found);
      return;
    }
    for (const std::size_t child : members) {
      if (child != *idle && child != root && forced[child] == k_none) {
        forced[child] = *idle;
        branch(root, members, forced, best);
        forced[child] = k_none;
      }
    }
  }

  const Network& m_model;
  Relays m_relays;
  Costs m_copy; ///< from, to
  std::vector<double> m_add;
};

} // namespace

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
  const std::vector<std::size_t> children = children_of(tree.up);
  for (std::size_t v = 0; v < model.places.size(); ++v) {
    if (tree.up[v] >= 0 && v != root) {
      add_uses(loads, *model.ways[v][static_cast<std::size_t>(tree.up[v])]);
    }
    if (tree.down[v] >= 0 && v != root) {
      add_uses(loads, *model.ways[static_cast<std::size_t>(tree.down[v])][v]);
    }
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

std::vector<std::size_t> cheapest_arborescence(const std::vector<std::vector<double>>& cost,
                                               std::size_t root) {
  const std::size_t n = cost.size();
  std::vector<std::size_t> parent(n, root);
  for (std::size_t v = 0; v < n; ++v) {
    if (v == root) {
      continue;
    }
    double least = k_never;
    for (std::size_t p = 0; p < n; ++p) {
      if (p != v && cost[p][v] < least) {
        least = cost[p][v];
        parent[v] = p;
      }
    }
    if (least == k_never) {
      return {};
    }
  }
  // A cycle among the cheapest parents, if there is one.
  std::vector<std::size_t> seen(n, k_none);
  std::vector<bool> in_cycle(n, false);
  std::size_t cycle = k_none;
  for (std::size_t start = 0; start < n && cycle == k_none; ++start) {
    std::size_t v = start;
    while (v != root && seen[v] == k_none) {
      seen[v] = start;
      v = parent[v];
    }
    if (v != root && seen[v] == start) {
      cycle = v;
    }
  }
  if (cycle == k_none) {
    return parent;
  }
  for (std::size_t v = cycle; !in_cycle[v]; v = parent[v]) {
    in_cycle[v] = true;
  }
  // The cycle becomes one node, the last. Entering it at v replaces v's parent in the cycle.
  std::vector<std::size_t> outside;
  for (std::size_t v = 0; v < n; ++v) {
    if (!in_cycle[v]) {
      outside.push_back(v);
    }
  }
  const std::size_t merged = outside.size();
  Costs smaller(merged + 1, std::vector<double>(merged + 1, k_never));
  std::vector<std::size_t> enters(merged, k_none); // by outside node: where it enters the cycle
  std::vector<std::size_t> leaves(merged, k_none); // and from where it is reached
  std::size_t small_root = 0;
  for (std::size_t i = 0; i < merged; ++i) {
    small_root = outside[i] == root ? i : small_root;
    for (std::size_t j = 0; j < merged; ++j) {
      smaller[i][j] = cost[outside[i]][outside[j]];
    }
    for (std::size_t v = 0; v < n; ++v) {
      if (!in_cycle[v]) {
        continue;
      }
      const double into = cost[outside[i]][v] - cost[parent[v]][v];
      if (into < smaller[i][merged]) {
        smaller[i][merged] = into;
        enters[i] = v;
      }
      if (cost[v][outside[i]] < smaller[merged][i]) {
        smaller[merged][i] = cost[v][outside[i]];
        leaves[i] = v;
      }
    }
  }
  const std::vector<std::size_t> small = cheapest_arborescence(smaller, small_root);
  if (small.empty()) {
    return {};
  }
  for (std::size_t i = 0; i < merged; ++i) {
    if (i != small_root) {
      parent[outside[i]] = small[i] == merged ? leaves[i] : outside[small[i]];
    }
  }
  parent[enters[small[merged]]] = outside[small[merged]];
  return parent;
}

std::vector<PricedTree> cheapest_trees(const Network& model, const std::vector<double>& prices,
                                       Relays relays) {
  std::vector<PricedTree> out;
  Search search(model, prices, relays);
  const std::vector<double> shares = model.root_shares();
  for (std::size_t root = 0; root < model.places.size(); ++root) {
    const bool wanted = shares.empty() || (root < shares.size() && shares[root] > 0);
    if (model.exits[root].empty() || !wanted) {
      continue;
    }
    Search::Found alone;
    alone.parents.assign(model.places.size(), -1);
    alone.parents[root] = static_cast<std::int64_t>(root);
    alone.cost = 0;
    Search::Found up = sums(model.collective) ? search.up(root) : alone;
    Search::Found down = gives(model.collective) ? search.down(root) : alone;
    if (up.parents.empty() || down.parents.empty()) {
      continue;
    }
    PricedTree best;
    best.tree.up = std::move(up.parents);
    best.tree.down = std::move(down.parents);
    const PricedExit exit = cheapest_exit(model, root, prices);
    best.tree.exit = exit.exit;
    best.cost = up.cost + down.cost + exit.cost;
    prune(model, best.tree);
    out.push_back(std::move(best));
  }
  return out;
}

} // namespace reckon
