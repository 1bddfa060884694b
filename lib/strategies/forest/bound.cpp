// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/bound.hpp"

#include "core/name_ranges.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <vector>

namespace reckon {
namespace {

constexpr double k_infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t k_all_sets_up_to = 8;

/// Greatest flow by shortest augmenting paths (Edmonds and Karp), for graphs of some hundred edges.
class Flow {
public:
  explicit Flow(std::size_t nodes) : m_out(nodes) {}

  void edge(std::size_t from, std::size_t to, double capacity) {
    m_out[from].push_back(m_edges.size());
    m_edges.push_back({to, capacity});
    m_out[to].push_back(m_edges.size());
    m_edges.push_back({from, 0.0});
  }

  /// Nodes on the source's side of a least cut; all of them when the cut is infinite.
  [[nodiscard]] std::vector<bool> cut(std::size_t source, std::size_t sink) {
    for (;;) {
      std::vector<std::size_t> by(m_out.size(), m_edges.size());
      std::vector<bool> seen(m_out.size(), false);
      seen[source] = true;
      std::queue<std::size_t> queue({source});
      while (!queue.empty() && !seen[sink]) {
        const std::size_t at = queue.front();
        queue.pop();
        for (const std::size_t e : m_out[at]) {
          if (!seen[m_edges[e].to] && m_edges[e].left > 0) {
            seen[m_edges[e].to] = true;
            by[m_edges[e].to] = e;
            queue.push(m_edges[e].to);
          }
        }
      }
      if (!seen[sink]) {
        return seen;
      }
      double least = k_infinite;
      for (std::size_t at = sink; at != source; at = m_edges[by[at] ^ 1U].to) {
        least = std::min(least, m_edges[by[at]].left);
      }
      if (least == k_infinite) {
        return std::vector<bool>(m_out.size(), true);
      }
      for (std::size_t at = sink; at != source; at = m_edges[by[at] ^ 1U].to) {
        Edge& forward = m_edges[by[at]];
        // Less than rounding is nothing left: else paths of 1e-17 go on for ever.
        const double left = forward.left - least;
        forward.left = left > 1e-12 * least ? left : 0.0;
        m_edges[by[at] ^ 1U].left += least;
      }
    }
  }

private:
  struct Edge {
    std::size_t to;
    double left;
  };
  std::vector<Edge> m_edges;
  std::vector<std::vector<std::size_t>> m_out;
};

class Bounds {
public:
  explicit Bounds(const Network& model) : m_model(model), m_next(model.nodes) {
    for (const GraphLink& link : model.links) {
      m_next[link.from].push_back(link.to);
    }
  }

  [[nodiscard]] NetworkBound best() {
    busy_already();
    for (const std::vector<std::size_t>& set : sets()) {
      std::vector<bool> inside(m_model.places.size(), false);
      for (const std::size_t v : set) {
        inside[v] = true;
      }
      // How much of the gradient others add to, and want the sum of.
      const double others = set.size() < m_model.workers ? 1.0 : m_model.network;
      const double size = static_cast<double>(set.size());
      const double halves = m_model.collective == Collective::all_reduce ? 2 : 1;
      const double messages = halves * (size - 1) + halves * std::min(1.0, others);
      for (const bool reversed : {false, true}) {
        cut(set, inside, crossing(inside, others, reversed), reversed);
        count(set, inside, messages, reversed);
      }
    }
    return m_best;
  }

private:
  /// A resource is busy with what passes anyway.
  void busy_already() {
    for (const Station& resource : m_model.stations) {
      offer(resource.background / resource.bytes_per_second, resource.name);
    }
  }

  /// How much of the gradient the workers of a set must send to the others; `reversed`: receive.
  /// Sums go to their roots, and what roots have goes to everybody else.
  [[nodiscard]] double crossing(const std::vector<bool>& inside, double others,
                                bool reversed) const {
    const std::vector<double> shares = m_model.root_shares();
    if (shares.empty()) {
      return others;
    }
    double within = 0, without = 0;
    std::size_t members = 0;
    for (std::size_t v = 0; v < shares.size(); ++v) {
      (inside[v] ? within : without) += shares[v];
      members += inside[v] ? 1U : 0U;
    }
    if (members == m_model.workers && m_model.elsewhere <= 0) {
      return 0;
    }
    const bool nths = has_nths(m_model.collective);
    const double remote = nths ? m_model.elsewhere / (1 + m_model.elsewhere) : 0;
    within *= 1 - remote;
    without = without * (1 - remote) + remote;
    return sums(m_model.collective) == reversed ? within : without;
  }

  void offer(double seconds_per_byte, std::string by) {
    if (seconds_per_byte > m_best.seconds_per_byte * (1 + 1e-12)) {
      m_best = {seconds_per_byte, std::move(by)};
    }
  }

  [[nodiscard]] std::string text(const std::vector<std::size_t>& set) const {
    if (set.size() == m_model.workers) {
      return "all workers";
    }
    std::vector<std::string> names;
    for (const std::size_t v : set) {
      names.push_back(m_model.name_of(v));
    }
    return fmt::format("{}", fmt::join(name_ranges(names), ", "));
  }

  [[nodiscard]] std::vector<std::vector<std::size_t>> sets() const {
    std::set<std::vector<std::size_t>> out;
    const std::size_t n = m_model.workers;
    if (n <= k_all_sets_up_to) {
      for (std::size_t bits = 1; bits < (std::size_t{1} << n); ++bits) {
        std::vector<std::size_t> set;
        for (std::size_t v = 0; v < n; ++v) {
          if ((bits >> v & 1U) != 0) {
            set.push_back(v);
          }
        }
        out.insert(std::move(set));
      }
    } else if (m_model.machines.size() > 1) {
      // Of machines that are alike one is enough, but that of a collective's root is not like them.
      if (has_root(m_model.collective)) {
        const std::size_t home = m_model.places[m_model.root].machine;
        std::vector<std::size_t> neighbours, others;
        for (std::size_t v = 0; v < n; ++v) {
          (m_model.places[v].machine == home ? neighbours : others).push_back(v);
        }
        out.insert({m_model.root});
        out.insert(neighbours);
        out.insert(others);
      }
      std::map<std::string, std::vector<std::size_t>> machines; // by group: the first's workers
      std::map<std::string, std::size_t> first;
      std::vector<std::size_t> all;
      for (std::size_t v = 0; v < n; ++v) {
        const std::size_t machine = m_model.places[v].machine;
        const std::string& group = m_model.machines[machine].group;
        all.push_back(v);
        if (first.try_emplace(group, machine).first->second == machine) {
          out.insert({v});
          machines[group].push_back(v);
        }
      }
      for (const auto& [group, workers] : machines) {
        out.insert(workers);
      }
      out.insert(all);
    } else {
      std::vector<std::size_t> all;
      for (std::size_t v = 0; v < n; ++v) {
        out.insert({v});
        all.push_back(v);
      }
      out.insert(all);
      out.insert(m_model.groups.begin(), m_model.groups.end());
      for (std::size_t node = 0; node < m_model.nodes; ++node) {
        for (std::size_t v = 0; v < n; ++v) {
          out.insert(together(v, node));
        }
      }
    }
    out.erase(std::vector<std::size_t>{});
    return {out.begin(), out.end()};
  }

  /// The workers that can be reached from v without passing `node`.
  [[nodiscard]] std::vector<std::size_t> together(std::size_t v, std::size_t node) const {
    std::vector<bool> seen(m_model.nodes, false);
    std::queue<std::size_t> queue({m_model.node_of[v]});
    seen[m_model.node_of[v]] = true;
    while (!queue.empty()) {
      const std::size_t at = queue.front();
      queue.pop();
      for (const std::size_t to : m_next[at]) {
        if (to != node && !seen[to]) {
          seen[to] = true;
          queue.push(to);
        }
      }
    }
    std::vector<std::size_t> out;
    for (std::size_t w = 0; w < m_model.workers; ++w) {
      if (seen[m_model.node_of[w]] && m_model.node_of[w] != node) {
        out.push_back(w);
      }
    }
    return out;
  }

  /// Links over which all that goes from the set to other endpoints passes, the fewest bytes per
  /// second of them that are left in `seconds_per_byte` beside what passes anyway. `reversed`: from
  /// the others to the set. Empty and `false` when nothing limits it.
  [[nodiscard]] bool least_cut(const std::vector<bool>& inside, bool only_workers, bool reversed,
                               double seconds_per_byte, std::vector<std::size_t>& links) const {
    Flow flow(m_model.nodes + 2);
    const std::size_t source = m_model.nodes;
    const std::size_t sink = m_model.nodes + 1;
    for (const GraphLink& link : m_model.links) {
      double capacity = k_infinite;
      if (link.station) {
        const Station& resource = m_model.stations[*link.station];
        capacity =
            std::max(0.0, resource.bytes_per_second * seconds_per_byte - resource.background);
      }
      flow.edge(reversed ? link.to : link.from, reversed ? link.from : link.to, capacity);
    }
    for (std::size_t v = 0; v < m_model.places.size(); ++v) {
      if (inside[v]) {
        flow.edge(source, m_model.node_of[v], k_infinite);
      } else if (v < m_model.workers || !only_workers) {
        flow.edge(m_model.node_of[v], sink, k_infinite);
      }
    }
    for (const std::size_t nic : m_model.nic_nodes) {
      flow.edge(nic, sink, k_infinite);
    }
    const std::vector<bool> seen = flow.cut(source, sink);
    if (seen[sink]) {
      return false;
    }
    for (std::size_t i = 0; i < m_model.links.size(); ++i) {
      const GraphLink& link = m_model.links[i];
      if (seen[reversed ? link.to : link.from] && !seen[reversed ? link.from : link.to]) {
        links.push_back(i);
      }
    }
    return true;
  }

  /// (needed + what passes anyway) / capacity of links; 0 when one of them has no known capacity.
  [[nodiscard]] double time_of(const std::vector<std::size_t>& links, double needed) const {
    double capacity = 0;
    double bytes = needed;
    for (const std::size_t i : links) {
      if (!m_model.links[i].station) {
        return 0;
      }
      const Station& resource = m_model.stations[*m_model.links[i].station];
      capacity += resource.bytes_per_second;
      bytes += resource.background;
    }
    return capacity > 0 ? bytes / capacity : 0;
  }

  struct Cut {
    double time = 0;
    std::vector<std::size_t> links;
  };
  /// The greatest time of any cut together with the links `fixed`: from the cut that is the least
  /// in a time, its own time, and again (Dinkelbach).
  [[nodiscard]] Cut longest(const std::vector<bool>& inside, bool only_workers, bool reversed,
                            double needed, const std::vector<std::size_t>& fixed) const {
    Cut cut;
    for (int i = 0; i < 100; ++i) {
      std::vector<std::size_t> links = fixed;
      // The first cut is that of the capacities themselves.
      if (!least_cut(inside, only_workers, reversed, cut.time > 0 ? cut.time : first_guess(),
                     links)) {
        return cut;
      }
      const double next = time_of(links, needed);
      if (!(next > cut.time * (1 + 1e-12))) {
        return cut;
      }
      cut = {next, std::move(links)};
    }
    return cut;
  }

  /// Long enough that background fills no link.
  [[nodiscard]] double first_guess() const {
    double guess = 0;
    for (const Station& resource : m_model.stations) {
      guess = std::max(guess, (resource.background + 1) / resource.bytes_per_second);
    }
    return guess;
  }

  void cut(const std::vector<std::size_t>& set, const std::vector<bool>& inside, double gradients,
           bool reversed) {
    if (gradients > 0) {
      const Cut least = longest(inside, true, reversed, gradients, {});
      std::vector<std::string> names;
      for (const std::size_t i : least.links) {
        names.push_back(m_model.stations[*m_model.links[i].station].name);
      }
      offer(least.time, fmt::format("what {} must {} over {}", text(set),
                                    reversed ? "receive" : "send", first_names(names)));
    }
  }

  /// What arrives at the set's workers, over the links into them, and what leaves the set for
  /// others, are together so many gradients. `reversed`: what departs from its workers, and what
  /// comes to the set.
  void count(const std::vector<std::size_t>& set, const std::vector<bool>& inside, double messages,
             bool reversed) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < m_model.links.size(); ++i) {
      const GraphLink& link = m_model.links[i];
      for (const std::size_t v : set) {
        if ((reversed ? link.from : link.to) == m_model.node_of[v]) {
          own.push_back(i);
        }
      }
    }
    const auto known = [&](std::size_t i) { return m_model.links[i].station.has_value(); };
    if (messages <= 0 || !std::all_of(own.begin(), own.end(), known)) {
      return;
    }
    offer(longest(inside, false, reversed, messages, own).time,
          fmt::format("{:g} gradients at least over links of {}", messages, text(set)));
  }

  const Network& m_model;
  std::vector<std::vector<std::size_t>> m_next; ///< nodes, by node
  NetworkBound m_best;
};

} // namespace

NetworkBound network_bound(const Network& model) {
  return Bounds(model).best();
}

} // namespace reckon
