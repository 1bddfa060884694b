// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/spanning.hpp"
#include "strategies/forest/trees.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_no_group = std::numeric_limits<std::size_t>::max();

/// Contracts the groups whose cheapest ways in go round, until none do. `Group`: Arborescences',
/// nodes first.
template <class Group>
class Contraction {
public:
  Contraction(const std::vector<double>& in, const std::vector<char>& free,
              std::vector<Group>& groups)
      : m_groups(groups), m_count(free.size()), m_at(m_count + 1, At::start) {
    m_at[m_count] = At::done;
    m_ways.reserve(m_count * m_at.size());
    for (std::uint32_t v = 0; v < m_count; ++v) {
      m_groups.push_back({v, 0, v, v});
      m_group.push_back(v);
      for (std::uint32_t p = 0; p < m_count; ++p) {
        m_ways.push_back({in[v * m_count + p], p, v});
      }
      m_ways.push_back({free[v] != 0 ? 0 : k_never, v, v});
    }
  }

  /// Returns the group that holds all nodes, which nothing reaches; k_no_group where it need not
  /// be.
  std::size_t contract_all() {
    for (std::size_t start = 0; start < m_count; ++start) {
      std::vector<std::size_t> stack;
      for (std::size_t c = start; m_at[c] == At::start || m_at[c] == At::stack; c = enter(c)) {
        if (m_at[c] == At::stack) {
          contract(stack, c);
        } else {
          m_at[c] = At::stack;
          stack.push_back(c);
        }
      }
      for (const std::size_t c : stack) {
        m_at[c] = At::done;
      }
    }
    return m_last;
  }

private:
  enum class At : char { start, stack, done, gone };
  struct Way {
    double cost = k_never;
    std::uint32_t from = 0, to = 0; ///< nodes
  };

  /// Notes the cheapest way into a group, and returns where it is from; m_count: from nowhere.
  std::size_t enter(std::size_t c) {
    const Way* const ways = &m_ways[c * m_at.size()];
    std::size_t best = c;
    for (std::size_t p = 0; p < m_at.size(); ++p) {
      if (p != c && m_at[p] != At::gone && (best == c || ways[p].cost < ways[best].cost)) {
        best = p;
      }
    }
    Group& entered = m_groups[m_group[c]];
    entered.least = ways[best].cost;
    entered.from = ways[best].from;
    entered.to = ways[best].to;
    m_last = best == m_count && entered.least == k_never ? m_group[c] : m_last;
    return best;
  }

  /// Makes one group of those on the stack from `rest` on, which stands for all of them afterwards.
  void contract(std::vector<std::size_t>& stack, std::size_t rest) {
    std::vector<Way> into(m_at.size());
    for (auto c = std::find(stack.begin(), stack.end(), rest); c != stack.end(); ++c) {
      const double least = m_groups[m_group[*c]].least, replaced = least == k_never ? 0 : least;
      for (std::size_t p = 0; p < into.size(); ++p) {
        const Way& way = m_ways[*c * into.size() + p];
        if (m_at[p] != At::gone && way.cost - replaced < into[p].cost) {
          into[p] = {way.cost - replaced, way.from, way.to};
        }
      }
    }
    std::copy(into.begin(), into.end(), &m_ways[rest * into.size()]);
    for (; stack.back() != rest; stack.pop_back()) {
      const std::size_t c = stack.back();
      m_groups[m_group[c]].within = m_groups.size();
      m_at[c] = At::gone;
      for (std::size_t v = 0; v < m_count; ++v) {
        const Way& way = m_ways[v * into.size() + c];
        Way& kept = m_ways[v * into.size() + rest];
        kept = way.cost < kept.cost ? way : kept;
      }
    }
    m_groups[m_group[rest]].within = m_groups.size();
    m_group[rest] = m_groups.size();
    m_groups.push_back({m_groups.size(), 0, 0, 0});
  }

  std::vector<Group>& m_groups;
  std::size_t m_count; ///< of nodes
  /// Of the groups that are not contracted yet, each at the number of one of its nodes: itself, the
  /// ways in from each, and last what it costs not to be reached.
  std::vector<std::size_t> m_group;
  std::vector<Way> m_ways;
  std::vector<At> m_at;
  std::size_t m_last = k_no_group;
};

} // namespace

Arborescences::Arborescences(std::vector<double> in, std::vector<char> free)
    : m_nodes(free.size()), m_cost(free.size(), k_never) {
  const std::size_t last = Contraction(in, free, m_groups).contract_all();
  // A root replaces the ways into all groups that it is in.
  double all = 0;
  std::size_t never = 0;
  std::vector<double> around(m_groups.size(), 0);
  std::vector<std::size_t> never_around(m_groups.size(), 0);
  for (std::size_t g = m_groups.size(); g-- > 0;) {
    const Group& it = m_groups[g];
    const bool reached = g != last;
    if (it.within != g) {
      around[g] = around[it.within];
      never_around[g] = never_around[it.within];
    }
    if (reached && it.least == k_never) {
      ++never;
      ++never_around[g];
    } else if (reached) {
      all += it.least;
      around[g] += it.least;
    }
  }
  for (std::size_t v = 0; v < m_nodes; ++v) {
    m_cost[v] = never > never_around[v] ? k_never : all - around[v];
  }
}

std::vector<std::size_t> Arborescences::parents(std::size_t root) const {
  std::vector<std::size_t> out(m_nodes, root);
  std::vector<char> replaced(m_groups.size(), 0);
  const auto replace = [&](std::size_t node, std::size_t up_to) {
    for (std::size_t g = node;; g = m_groups[g].within) {
      replaced[g] = 1;
      if (g == up_to || m_groups[g].within == g) {
        return;
      }
    }
  };
  replace(root, m_groups.size());
  for (std::size_t g = m_groups.size(); g-- > 0;) {
    if (replaced[g] == 0) {
      out[m_groups[g].to] = m_groups[g].from;
      replace(m_groups[g].to, g);
    }
  }
  return out;
}

} // namespace reckon
