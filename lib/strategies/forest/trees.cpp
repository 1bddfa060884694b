// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/trees.hpp"

#include "strategies/forest/spanning.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace reckon {
namespace {

/// Costs that differ by less are the same cost in another order of additions.
constexpr double k_tie = 1e-13;
constexpr std::size_t k_none = std::numeric_limits<std::size_t>::max();

using Costs = std::vector<double>; ///< [v n + p]: of p being the parent of v

/// By place: which places are alike: of machines that can change places without a change of any
/// cost those with the same position.
class Alike {
public:
  Alike(const Network& network, const std::vector<const Costs*>& costs,
        const std::vector<double>& ends)
      : m_kind(network.places.size()), m_machines(network.machines.size()) {
    const std::size_t n = network.places.size();
    const std::vector<double> shares = network.root_shares();
    for (std::size_t v = 0; v < n; ++v) {
      m_kind[v] = v;
      m_machines[network.places[v].machine].push_back(v);
    }
    if (n == network.workers) {
      return; // nothing to choose
    }
    const auto differ = [](double a, double b) {
      return a != b && !(std::abs(a - b) <= k_tie * std::min(std::abs(a), std::abs(b)));
    };
    const auto can_change = [&](const std::vector<std::size_t>& a,
                                const std::vector<std::size_t>& b) {
      const std::vector<std::size_t> other = changed(a, b);
      for (const std::size_t u : a) {
        if ((u < network.workers) != (other[u] < network.workers) ||
            differ(ends[u], ends[other[u]]) ||
            (u < shares.size() && differ(shares[u], shares[other[u]]))) {
          return false;
        }
        for (const Costs* const cost : costs) {
          for (std::size_t v = 0; v < n; ++v) {
            if (differ((*cost)[u * n + v], (*cost)[other[u] * n + other[v]]) ||
                differ((*cost)[v * n + u], (*cost)[other[v] * n + other[u]])) {
              return false;
            }
          }
        }
      }
      return true;
    };
    for (std::size_t b = 1; b < m_machines.size(); ++b) {
      for (std::size_t a = 0; a < b; ++a) {
        const std::vector<std::size_t>&one = m_machines[a], &two = m_machines[b];
        if (one.size() == two.size() && m_kind[one.front()] == one.front() &&
            can_change(one, two)) {
          for (std::size_t i = 0; i < two.size(); ++i) {
            m_kind[two[i]] = one[i];
          }
          break;
        }
      }
    }
  }

  /// The number of the first place that is like this one.
  [[nodiscard]] std::size_t kind(std::size_t place) const { return m_kind[place]; }

  /// A tree after its root's machine and that of the place `root`, which is like it, have changed
  /// places.
  [[nodiscard]] std::vector<std::int64_t> moved(const Network& network,
                                                const std::vector<std::int64_t>& parents,
                                                std::size_t from, std::size_t root) const {
    if (from == root) {
      return parents;
    }
    const std::vector<std::size_t> other =
        changed(m_machines[network.places[from].machine], m_machines[network.places[root].machine]);
    std::vector<std::int64_t> out(parents.size(), -1);
    for (std::size_t v = 0; v < parents.size(); ++v) {
      out[other[v]] = parents[v] < 0
                          ? -1
                          : static_cast<std::int64_t>(other[static_cast<std::size_t>(parents[v])]);
    }
    return out;
  }

private:
  /// By place: the one in its stead when two machines change places.
  [[nodiscard]] std::vector<std::size_t> changed(const std::vector<std::size_t>& a,
                                                 const std::vector<std::size_t>& b) const {
    std::vector<std::size_t> out(m_kind.size());
    std::iota(out.begin(), out.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
      out[a[i]] = b[i];
      out[b[i]] = a[i];
    }
    return out;
  }

  std::vector<std::size_t> m_kind;
  std::vector<std::vector<std::size_t>> m_machines; ///< places
};

/// The cheapest trees of one half, up or down, for each root. Branch and bound over the places that
/// only sum: one that is not decided yet can be used and need not be reached.
class Half {
public:
  /// cost[v n + p]: of p being the parent of v; `ends`: of being the root.
  Half(const Network& network, const Alike& alike, Costs cost, std::vector<double> ends)
      : m_network(network), m_alike(alike), m_places(network.places.size()),
        m_cost(std::move(cost)), m_ends(std::move(ends)), m_best(m_places, k_never),
        m_least(m_places, k_never), m_parents(m_places) {
    m_first.state.assign(m_places, State::in);
    std::fill(m_first.state.begin() + static_cast<std::ptrdiff_t>(m_network.workers),
              m_first.state.end(), State::open);
    m_first.child_of.assign(m_places, k_none);
    m_free.emplace(relaxed(m_first));
  }

  /// A lower bound, with every place free to use.
  [[nodiscard]] double first_least(std::size_t root) const {
    return m_free->cost(root) + m_ends[root];
  }

  /// Looks for trees that cost less than `below`, by root.
  void solve(std::vector<double> below, double steps) {
    m_best = std::move(below);
    look(std::move(m_first), *m_free);
    const double size = static_cast<double>(m_places);
    while (!m_open.empty() && steps > 0) {
      std::pop_heap(m_open.begin(), m_open.end(), later);
      const Node node = std::move(m_open.back());
      m_open.pop_back();
      if (can_help(node)) {
        steps -= size * size * static_cast<double>(branch(node));
      }
    }
    for (const Node& node : m_open) {
      keep(node.least);
    }
  }

  /// No tree of this half with its root there costs less: one that is not below what was asked for
  /// is not looked for, and its least is that.
  [[nodiscard]] double least(std::size_t root) const {
    return std::min(m_least[m_alike.kind(root)], m_best[m_alike.kind(root)]);
  }
  /// Empty where there is none.
  [[nodiscard]] std::vector<std::int64_t> parents(std::size_t root) const {
    const std::vector<std::int64_t>& found = m_parents[m_alike.kind(root)];
    return found.empty() ? found : m_alike.moved(m_network, found, m_alike.kind(root), root);
  }

private:
  enum class State : char { in, out, open };
  struct Node {
    std::vector<State> state;          ///< by place
    std::vector<std::size_t> child_of; ///< by place: its parent where that is decided
    std::vector<double> least;         ///< by root
    std::size_t undecided = k_none;    ///< the place to decide of next
    double key = k_never;
    std::size_t number = 0;
  };
  static bool later(const Node& a, const Node& b) {
    return a.key > b.key || (a.key == b.key && a.number > b.number);
  }

  /// What is left unlooked at bounds all that it stands for.
  void keep(const std::vector<double>& least) {
    for (std::size_t root = 0; root < m_places; ++root) {
      double& kept = m_least[m_alike.kind(root)];
      kept = std::min(kept, least[root]);
    }
  }

  [[nodiscard]] bool is_below(double cost, double than) const {
    return cost < than && (than == k_never || cost < than - k_tie * std::abs(than));
  }
  [[nodiscard]] bool can_help(const Node& node) const {
    for (std::size_t root = 0; root < m_places; ++root) {
      if (is_below(node.least[root], m_best[m_alike.kind(root)])) {
        return true;
      }
    }
    return false;
  }

  struct Looked {
    double cost = k_never;
    std::size_t undecided = k_none;
  };
  Looked look_at(const Node& node, std::size_t root, std::vector<std::int64_t>& parents) const {
    std::vector<std::size_t> children = children_of(parents);
    Looked out;
    std::size_t most = 0;
    for (std::size_t v = m_network.workers; v < m_places; ++v) {
      if (v != root && parents[v] == static_cast<std::int64_t>(v) && children[v] > most) {
        most = children[v]; // used, but nothing pays for reaching it
        out.undecided = v;
      }
    }
    if (out.undecided != k_none) {
      return out;
    }
    for (std::size_t v = m_network.workers; v < m_places; ++v) {
      if (v != root && parents[v] == static_cast<std::int64_t>(v)) {
        parents[v] = -1;
      }
    }
    const std::vector<std::int64_t> before = parents;
    prune_leaves(m_network, parents, root);
    out.cost = m_ends[root];
    for (std::size_t v = 0; v < m_places; ++v) {
      if (v == root || before[v] < 0) {
        continue;
      }
      const double edge = m_cost[v * m_places + static_cast<std::size_t>(before[v])];
      if (parents[v] >= 0) {
        out.cost += edge;
      } else if (edge < 0 && (out.undecided == k_none || node.state[v] == State::open)) {
        out.undecided = v; // saved a sum that it does not make
      }
    }
    // Where it has a child already, that one is in the tree without any of its own.
    const auto& child_of = node.child_of;
    for (auto child = child_of.end(); out.undecided != k_none;
         out.undecided = static_cast<std::size_t>(child - child_of.begin())) {
      child = std::find(child_of.begin(), child_of.end(), out.undecided);
      if (child == child_of.end()) {
        break;
      }
    }
    return out;
  }

  /// By place that is not out.
  [[nodiscard]] std::vector<std::size_t> members_of(const Node& node) const {
    std::vector<std::size_t> out;
    for (std::size_t v = 0; v < m_places; ++v) {
      if (node.state[v] != State::out) {
        out.push_back(v);
      }
    }
    return out;
  }

  [[nodiscard]] Arborescences relaxed(const Node& node) const {
    const std::vector<std::size_t> members = members_of(node);
    const std::size_t count = members.size();
    Costs cost(count * count, k_never);
    std::vector<char> free;
    for (std::size_t i = 0; i < count; ++i) {
      const double* const row = m_cost.data() + members[i] * m_places;
      const std::size_t only = node.child_of[members[i]];
      free.push_back(node.state[members[i]] == State::open ? 1 : 0);
      for (std::size_t j = 0; j < count; ++j) {
        if (only == k_none || only == members[j]) {
          cost[i * count + j] = row[members[j]];
        }
      }
    }
    return {std::move(cost), std::move(free)};
  }

  void look(Node node) {
    const Arborescences all = relaxed(node);
    look(std::move(node), all);
  }

  /// Bounds the trees of a node from below, and puts it aside where more must be decided.
  void look(Node node, const Arborescences& all) {
    const std::vector<std::size_t> members = members_of(node);
    const std::size_t count = members.size();
    node.least.assign(m_places, k_never);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t root = members[i];
      const double least = all.cost(i) + m_ends[root];
      double& best = m_best[m_alike.kind(root)];
      if (node.child_of[root] != k_none || !is_below(least, best)) {
        continue;
      }
      std::vector<std::int64_t> parents(m_places, -1);
      const std::vector<std::size_t> found = all.parents(i);
      for (std::size_t j = 0; j < count; ++j) {
        parents[members[j]] = static_cast<std::int64_t>(members[found[j]]);
      }
      const Looked looked = look_at(node, root, parents);
      if (is_below(looked.cost, best)) {
        best = looked.cost;
        m_parents[m_alike.kind(root)] = m_alike.moved(m_network, parents, root, m_alike.kind(root));
      }
      if (looked.undecided != k_none && is_below(least, best)) {
        node.least[root] = least;
        if (least < node.key) {
          node.key = least;
          node.undecided = looked.undecided;
        }
      }
    }
    if (node.undecided != k_none) {
      node.number = ++m_looked;
      m_open.push_back(std::move(node));
      std::push_heap(m_open.begin(), m_open.end(), later);
    }
  }

  /// Decides of one place: in, or out with all that are like it (Ostrowski et al. 2011); one that
  /// is in and has no child gets each other place as one in turn. Returns how many nodes were
  /// looked at.
  std::size_t branch(const Node& node) {
    const std::size_t at = node.undecided;
    if (node.state[at] == State::open) {
      Node with = node, without = node;
      with.key = without.key = k_never;
      with.undecided = without.undecided = k_none;
      with.state[at] = State::in;
      for (std::size_t v = m_network.workers; v < m_places; ++v) {
        if (v == at || (node.state[v] == State::open && stands_like(node, v, at))) {
          without.state[v] = State::out;
        }
      }
      look(std::move(with));
      look(std::move(without));
      return 2;
    }
    std::size_t looked = 0;
    for (std::size_t child = 0; child < m_places; ++child) {
      if (child != at && node.state[child] != State::out && node.child_of[child] == k_none) {
        Node next = node;
        next.key = k_never;
        next.undecided = k_none;
        next.state[child] = State::in;
        next.child_of[child] = at;
        look(std::move(next));
        ++looked;
      }
    }
    return looked;
  }

  /// Whether two places and what is decided in their machines are alike.
  [[nodiscard]] bool stands_like(const Node& node, std::size_t a, std::size_t b) const {
    if (m_alike.kind(a) != m_alike.kind(b)) {
      return false;
    }
    const auto decided = [&](std::size_t place) {
      std::vector<std::pair<std::size_t, State>> out;
      for (std::size_t v = 0; v < m_places; ++v) {
        if (m_network.places[v].machine == m_network.places[place].machine) {
          out.emplace_back(m_alike.kind(v), node.state[v]);
        }
      }
      return out;
    };
    return std::all_of(node.child_of.begin(), node.child_of.end(),
                       [](std::size_t parent) { return parent == k_none; }) &&
           decided(a) == decided(b);
  }

  const Network& m_network;
  const Alike& m_alike;
  std::size_t m_places;
  Costs m_cost;
  std::vector<double> m_ends;
  std::vector<double> m_best;  ///< by kind of root: of a tree that was found, or what is asked for
  std::vector<double> m_least; ///< by kind of root: of what was not looked at
  std::vector<std::vector<std::int64_t>> m_parents; ///< by kind of root
  Node m_first;
  std::optional<Arborescences> m_free;
  std::vector<Node> m_open; ///< a heap
  std::size_t m_looked = 0;
};

/// What copies cost at prices of stations.
struct EdgeCosts {
  Costs up, down;
  std::vector<double>
      saved; ///< by place: less than 0 by a relay's first sum, which it need not make
  std::vector<double> ends; ///< by place: of being the root
};
EdgeCosts edge_costs(const Network& network, const std::vector<double>& prices) {
  const std::size_t n = network.places.size();
  EdgeCosts out{Costs(n * n, k_never), Costs(n * n, k_never), std::vector<double>(n, 0.0),
                std::vector<double>(n, k_never)};
  const std::vector<double> shares = network.root_shares();
  for (std::size_t v = 0; v < n; ++v) {
    // A relay's first stream needs no sum: taken off what it pays for handing its own on.
    const double add = cost_of(network.add[v], prices);
    out.saved[v] = network.places[v].worker ? 0 : -add;
    for (std::size_t u = 0; u < n; ++u) {
      if (u != v && network.ways[u][v]) {
        const double there = cost_of(*network.ways[u][v], prices);
        out.down[v * n + u] =
            there + (goes_both_ways(network, v, u) ? cost_of(*network.ways[v][u], prices) : 0);
        out.up[u * n + v] =
            there + (goes_both_ways(network, u, v) ? cost_of(*network.ways[v][u], prices) : add);
      }
    }
    if (shares.empty() || (v < shares.size() && shares[v] > 0)) {
      out.ends[v] = cheapest_exit(network, v, prices).cost;
    }
  }
  for (std::size_t v = network.workers; v < n; ++v) {
    for (std::size_t p = 0; p < n; ++p) {
      out.up[v * n + p] += out.saved[v];
    }
  }
  return out;
}

/// Solves each half for trees that cost less than `below` together with the other. Returns by place
/// whether trees with the root there are possible.
std::vector<bool> solve_halves(std::vector<Half>& halves, const std::vector<double>& ends,
                               const std::vector<double>& below, double steps) {
  std::vector<bool> possible;
  for (std::size_t root = 0; root < ends.size(); ++root) {
    possible.push_back(ends[root] < k_never && std::ranges::all_of(halves, [&](const Half& half) {
                         return half.first_least(root) < k_never;
                       }));
  }
  for (std::size_t h = 0; h < halves.size(); ++h) {
    std::vector<double> most(ends.size(), -k_never);
    for (std::size_t root = 0; root < ends.size(); ++root) {
      if (!possible[root]) {
        continue;
      }
      most[root] = (below.empty() ? k_never : below[root]) - ends[root];
      for (std::size_t other = 0; other < halves.size(); ++other) {
        if (other != h) {
          most[root] -= other < h ? halves[other].least(root) : halves[other].first_least(root);
        }
      }
    }
    halves[h].solve(std::move(most), steps);
    for (std::size_t root = 0; root < ends.size(); ++root) {
      possible[root] = possible[root] && halves[h].least(root) < k_never;
    }
  }
  return possible;
}

} // namespace

CheapestTrees cheapest_trees(const Network& network, const std::vector<double>& prices,
                             const std::vector<double>& below, double steps) {
  const std::size_t n = network.places.size();
  EdgeCosts costs = edge_costs(network, prices);
  const Alike alike(network, {&costs.up, &costs.down}, costs.ends);
  std::vector<Half> halves;
  halves.reserve(2);
  if (sums(network.collective)) {
    halves.emplace_back(network, alike, std::move(costs.up), std::move(costs.saved));
  }
  if (gives(network.collective)) {
    halves.emplace_back(network, alike, std::move(costs.down), std::vector<double>(n, 0.0));
  }
  const std::vector<bool> possible = solve_halves(halves, costs.ends, below, steps);
  CheapestTrees out;
  for (std::size_t root = 0; root < n; ++root) {
    out.least.push_back(possible[root] ? costs.ends[root] : k_never);
    if (!possible[root]) {
      continue;
    }
    PricedTree best;
    best.tree.up.assign(n, -1);
    best.tree.up[root] = static_cast<std::int64_t>(root);
    best.tree.down = best.tree.up;
    bool found = true;
    for (std::size_t h = 0; h < halves.size(); ++h) {
      out.least[root] += halves[h].least(root);
      std::vector<std::int64_t> parents = halves[h].parents(root);
      found = found && !parents.empty();
      (h == 0 && sums(network.collective) ? best.tree.up : best.tree.down) = std::move(parents);
    }
    if (found) {
      best.tree.exit = cheapest_exit(network, root, prices).exit;
      best.cost = cost_of(network, best.tree, prices);
      out.trees.push_back(std::move(best));
    }
  }
  return out;
}

} // namespace reckon
