// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/spanning.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reckon {
namespace {

constexpr double k_never = std::numeric_limits<double>::infinity();
/// Up to so many steps of Prim every choice of relays is looked at; beyond, none, each alone, and
/// the best with more as long as these help.
constexpr double k_most_steps = 2e6;
constexpr std::size_t k_most_relays = 16;

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
  // Half of what it costs more to leave a place than to come to it, in the mean.
  std::vector<double> tilt(n, 0.0);
  for (std::size_t u = 0; u < n; ++u) {
    double count = 0;
    for (std::size_t v = 0; v < n; ++v) {
      const double there = one_way[u * n + v], back = one_way[v * n + u];
      if (there < k_never && back < k_never) {
        tilt[u] += there - back;
        ++count;
      }
    }
    tilt[u] /= std::max(1.0, count);
    m_tilted = m_tilted || std::abs(tilt[u]) > m_tie;
  }
  m_both.assign(n * n, k_never);
  m_up = m_down = m_both;
  for (std::size_t u = 0; u < n; ++u) {
    for (std::size_t v = 0; v < n; ++v) {
      const double there = one_way[u * n + v], back = one_way[v * n + u];
      m_both[u * n + v] = there + back + m_add[u] + m_add[v];
      m_up[u * n + v] = std::min(there - tilt[u], back - tilt[v]) + m_add[u] + m_add[v];
      m_down[u * n + v] = std::min(there + tilt[v], back + tilt[u]);
    }
  }
  choose_relays();
}

/// Prim's algorithm; of equally cheap links the one that leads least far from the start.
Spanning::Grown Spanning::grow(const std::vector<double>& cost,
                               const std::vector<std::size_t>& members, std::size_t start) const {
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
    const double* const row = cost.data() + members[at] * m_places;
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

/// The relays of the cheapest mirrored tree, and the bound over all choices of them.
void Spanning::choose_relays() {
  const std::size_t relays = m_places - m_network.workers;
  const auto members_with = [&](const std::vector<std::size_t>& chosen) {
    std::vector<std::size_t> members(m_network.workers);
    for (std::size_t v = 0; v < members.size(); ++v) {
      members[v] = v;
    }
    members.insert(members.end(), chosen.begin(), chosen.end());
    return members;
  };
  m_least = k_never;
  double cheapest = k_never;
  double exit = m_places > 0 ? k_never : 0;
  for (std::size_t root = 0; root < m_places; ++root) {
    exit = std::min(exit, cheapest_exit(m_network, root, m_prices).cost);
  }
  /// Whether it is cheaper than all before.
  const auto look = [&](const std::vector<std::size_t>& chosen) {
    const std::vector<std::size_t> members = members_with(chosen);
    // A place with d links has d - 1 children, a root d. A worker adds once for each, a relay once
    // less: all sums are those of d for each place, less one for a worker and two for a relay, and
    // one more for the root.
    double less = 0, root = k_never;
    for (const std::size_t v : members) {
      less += (v < m_network.workers ? 1 : 2) * m_add[v];
      root = m_network.exits[v].empty() ? root : std::min(root, m_add[v]);
    }
    const double sums = (root == k_never ? 0 : root) - less;
    const double down = grow(m_down, members, 0).cost;
    const double up = m_sums_cost || m_tilted ? grow(m_up, members, 0).cost + sums : down;
    m_least = std::min(m_least, up + down + exit);
    const double cost = grow(m_both, members, 0).cost + sums;
    if (cost >= cheapest - m_tie) {
      return false;
    }
    cheapest = cost;
    m_members = members;
    return true;
  };
  look({});
  const double steps = static_cast<double>(m_places) * static_cast<double>(m_places);
  if (relays <= k_most_relays &&
      steps * static_cast<double>(std::size_t{1} << relays) <= k_most_steps) {
    for (std::size_t bits = 1; bits < (std::size_t{1} << relays); ++bits) {
      std::vector<std::size_t> chosen;
      for (std::size_t i = 0; i < relays; ++i) {
        if ((bits >> i & 1U) != 0) {
          chosen.push_back(m_network.workers + i);
        }
      }
      look(chosen);
    }
    return;
  }
  m_bounds = false;
  std::vector<std::size_t> chosen;
  for (bool helped = true; helped;) {
    helped = false;
    std::vector<std::size_t> best;
    for (std::size_t r = m_network.workers; r < m_places; ++r) {
      if (std::find(chosen.begin(), chosen.end(), r) == chosen.end()) {
        std::vector<std::size_t> more = chosen;
        more.push_back(r);
        if (look(more)) {
          best = more;
          helped = true;
        }
      }
    }
    chosen = helped ? best : chosen;
  }
}

std::optional<Tree> Spanning::tree(std::size_t start) const {
  if (m_members.empty()) {
    return std::nullopt;
  }
  const Grown grown = grow(m_both, m_members, start % m_members.size());
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
    const bool exits_differ = m_network.exits[root].size() > 1 || m_network.network > 0;
    if (!m_sums_cost && !exits_differ) {
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
