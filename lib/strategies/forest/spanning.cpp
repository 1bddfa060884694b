// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/spanning.hpp"

#include "core/indices.hpp"
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace reckon {
namespace {

using Neighbours = std::vector<std::vector<std::size_t>>;

/// All places of a tree, the nearest to `root` first, with the parent of each by place; the root's
/// is itself, and -1 stands for a place that is not in the tree.
struct Rooted {
  std::vector<std::size_t> order;
  std::vector<std::int64_t> parent;
};
Rooted rooted_at(const Neighbours& neighbours, std::size_t root) {
  Rooted out{{root}, std::vector<std::int64_t>(neighbours.size(), -1)};
  out.parent[root] = static_cast<std::int64_t>(root);
  for (std::size_t i = 0; i < out.order.size(); ++i) {
    for (const std::size_t next : neighbours[out.order[i]]) {
      if (out.parent[next] < 0) {
        out.parent[next] = static_cast<std::int64_t>(out.order[i]);
        out.order.push_back(next);
      }
    }
  }
  return out;
}

/// The place from which the farthest of a tree is nearest: the middle of its longest way.
std::size_t centre_of(const Neighbours& neighbours, std::size_t any) {
  const std::size_t one_end = rooted_at(neighbours, any).order.back();
  const Rooted tree = rooted_at(neighbours, one_end);
  std::vector<std::size_t> way{tree.order.back()};
  while (way.back() != one_end) {
    way.push_back(static_cast<std::size_t>(tree.parent[way.back()]));
  }
  return way[way.size() / 2];
}

} // namespace

Spanning::Spanning(const Network& network, const std::vector<double>& prices)
    : m_network(network), m_prices(prices), m_places(network.places.size()) {
  const std::size_t n = m_places;
  std::vector<double> one_way(n * n, k_never);
  double dearest = 0;
  for (std::size_t u = 0; u < n; ++u) {
    m_add.push_back(cost_of(network.add[u], prices));
    m_sums_cost = m_sums_cost || m_add.back() > 0;
    for (std::size_t v = 0; v < n; ++v) {
      if (u != v && network.ways[u][v]) {
        one_way[u * n + v] = cost_of(*network.ways[u][v], prices);
        dearest = std::max(dearest, one_way[u * n + v]);
      }
    }
  }
  constexpr double k_rounding = 1e-9;
  m_tie = k_rounding * dearest;
  m_both.assign(n * n, k_never);
  for (std::size_t u = 0; u < n; ++u) {
    for (std::size_t v = 0; v < n; ++v) {
      m_both[u * n + v] = one_way[u * n + v] + one_way[v * n + u] + m_add[u] + m_add[v];
    }
  }
  choose_relays();
}

/// Prim's algorithm; of equally cheap links the one that leads least far from the start.
Spanning::Grown Spanning::grow(const std::vector<std::size_t>& members, std::size_t start) const {
  const std::size_t count = members.size();
  Grown out;
  out.parent.assign(count, start);
  std::vector<double> least(count, k_never);
  std::vector<std::size_t> depth(count, 0);
  std::vector<char> joined(count, 0);
  std::size_t at = start;
  for (std::size_t done = 1;; ++done) {
    joined[at] = 1;
    if (done == count) {
      return out;
    }
    const double* const row = m_both.data() + members[at] * m_places;
    std::size_t next = count;
    for (std::size_t v = 0; v < count; ++v) {
      if (joined[v] != 0) {
        continue;
      }
      const double through = row[members[v]];
      if (through < least[v] - m_tie ||
          (through <= least[v] + m_tie && depth[at] < depth[out.parent[v]])) {
        least[v] = std::min(through, least[v]);
        out.parent[v] = at;
      }
      if (next == count || least[v] < least[next] - m_tie ||
          (least[v] <= least[next] + m_tie && depth[out.parent[v]] < depth[out.parent[next]])) {
        next = v;
      }
    }
    if (next == count || least[next] == k_never) {
      out.cost = k_never;
      return out;
    }
    out.cost += least[next];
    depth[next] = depth[out.parent[next]] + 1;
    at = next;
  }
}

void Spanning::choose_relays() {
  double cheapest = k_never;
  /// Whether it is cheaper than all before.
  const auto look = [&](std::vector<std::size_t> members) {
    // A place with d links has d - 1 children, a root d. A worker adds once for each, a relay once
    // less: all sums are those of d for each place, less one for a worker and two for a relay, and
    // one more for the root.
    double less = 0, root = k_never;
    for (const std::size_t v : members) {
      less += (v < m_network.workers ? 1 : 2) * m_add[v];
      root = m_network.exits[v].empty() ? root : std::min(root, m_add[v]);
    }
    const double cost = grow(members, 0).cost + (root == k_never ? 0 : root) - less;
    if (!(cost < cheapest - m_tie)) {
      return false;
    }
    cheapest = cost;
    m_members = std::move(members);
    return true;
  };
  std::vector<std::size_t> members = indices(m_places);
  look(members);
  members.resize(m_network.workers);
  look(members);
  for (bool helped = true; helped;) {
    helped = false;
    const std::vector<std::size_t> before = m_members;
    for (std::size_t r = m_network.workers; r < m_places && !before.empty(); ++r) {
      std::vector<std::size_t> changed = before;
      if (std::erase(changed, r) == 0) {
        changed.push_back(r);
      }
      helped = look(std::move(changed)) || helped;
    }
  }
}

std::optional<Tree> Spanning::tree(std::size_t start) const {
  if (m_members.empty()) {
    return std::nullopt;
  }
  const Grown grown = grow(m_members, start % m_members.size());
  if (grown.cost == k_never) {
    return std::nullopt;
  }
  Neighbours neighbours(m_places);
  for (std::size_t i = 0; i < m_members.size(); ++i) {
    if (grown.parent[i] != i) {
      neighbours[m_members[i]].push_back(m_members[grown.parent[i]]);
      neighbours[m_members[grown.parent[i]]].push_back(m_members[i]);
    }
  }
  std::optional<Tree> best;
  double cheapest = k_never;
  const std::size_t centre = centre_of(neighbours, m_members.front());
  for (const std::size_t root : rooted_at(neighbours, centre).order) {
    if (m_network.exits[root].empty()) {
      continue;
    }
    const std::vector<std::int64_t> parent = rooted_at(neighbours, root).parent;
    Tree tree{parent, parent, cheapest_exit(m_network, root, m_prices).exit};
    prune(m_network, tree);
    const bool roots_differ = m_network.exits[root].size() > 1 || m_network.network > 0 ||
                              std::ranges::any_of(m_network.places, &Place::link_switch);
    if (!m_sums_cost && !roots_differ) {
      return tree;
    }
    const double cost = cost_of(m_network, tree, m_prices);
    if (cost < cheapest - m_tie) {
      cheapest = cost;
      best = std::move(tree);
    }
  }
  return best;
}

} // namespace reckon
