// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/cutting.hpp"

#include "core/indices.hpp"
#include "equations/coarse.hpp"
#include "strategies/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

constexpr std::int64_t k_no_rank = -1;

class Cutter {
public:
  Cutter(const Job& job, const Ways& ways, const std::vector<ProxyRoute>& routes,
         const TreeCut& cut)
      : m_job(job), m_ways(ways), m_routes(routes), m_cut(cut) {}

  [[nodiscard]] Plan cut() const {
    Plan plan = without_parts();
    const auto lanes = static_cast<std::uint64_t>(m_ways.lanes());
    const bool dual = m_cut.boundary > 0 && m_cut.boundary < m_job.workload.tensors.size();
    using TreeKey = std::tuple<Pattern, std::size_t, bool>;
    std::map<TreeKey, std::size_t> trees;
    std::map<std::size_t, double> owned;                         // by rank
    std::map<bool, std::uint64_t> turn;                          // by who sums
    std::map<std::size_t, std::pair<double, double>> round_ring; // by owner: bytes each way
    for (const std::size_t t : order_of_tensors()) {
      const Tensor& tensor = m_job.workload.tensors[t];
      const bool by_workers = t >= m_cut.boundary;
      const Pattern pattern = by_workers ? Pattern() : pattern_of(t);
      const std::vector<std::size_t> members = members_of(pattern);
      plan.tensors[t] = {tensor.name, by_workers, plan.parts.size(), 0};
      std::uint64_t offset = m_job.layout.tensor_offset_bytes[t];
      for (const std::uint64_t bytes :
           shards_of(tensor.bytes(), static_cast<std::uint64_t>(m_cut.shard_bytes),
                     size_of(tensor.dtype))) {
        std::size_t owner = 0; // who has the least so far
        for (std::size_t m = 1; m < members.size(); ++m) {
          owner = owned[members[m]] < owned[members[owner]] ? m : owner;
        }
        owned[members[owner]] += static_cast<double>(bytes);
        const std::uint64_t number = turn[by_workers]++;
        // Of equal shards each owner's go one way and the other in turn.
        auto& [forth, back] = round_ring[members[owner]];
        const bool backwards =
            m_cut.directions == 2 && members.size() > 2 && !by_workers && forth > back;
        (backwards ? back : forth) += static_cast<double>(bytes);
        const auto [tree, added] =
            trees.try_emplace({pattern, owner, backwards}, plan.trees.size());
        if (added) {
          plan.trees.push_back(tree_of(pattern, owner, backwards));
        }
        plan.trees[tree->second].share += static_cast<double>(bytes) / m_job.bytes();
        plan.parts.offset_bytes.push_back(offset);
        plan.parts.bytes.push_back(bytes);
        plan.parts.server.push_back(members[owner]);
        plan.parts.tree.push_back(tree->second);
        // The workers' ring has lanes of its own: it does not wait behind what the proxies sum.
        plan.parts.lane.push_back(number % lanes + (dual && by_workers ? lanes : 0));
        offset += bytes;
        ++plan.tensors[t].parts;
      }
    }
    plan.part_bytes = *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
    for (std::size_t r = 0; r < m_job.ranks(); ++r) {
      PlanRank& rank = plan.ranks.emplace_back(m_ways.place_of(r));
      rank.server = owned[r] > 0;
      rank.lanes = static_cast<int>(lanes * (dual ? 2 : 1));
      rank.share_bytes = owned[r];
      rank.assigned_bytes = static_cast<std::uint64_t>(owned[r]);
    }
    return plan;
  }

private:
  [[nodiscard]] Plan without_parts() const {
    Plan plan;
    plan.strategy = m_cut.dense ? "dense" : "coarse";
    plan.gradient_bytes = m_job.layout.total_bytes;
    plan.runs = m_job.layout.runs;
    plan.wire = m_job.wire;
    plan.routing = m_routes;
    if (m_cut.dense) {
      for (ProxyRoute& r : plan.routing) {
        r.latency_proxy = r.bandwidth_proxy = m_job.devices.front();
        r.threshold_bytes.reset();
        r.crossings_bytes.clear();
      }
    }
    plan.passes = m_job.passes;
    plan.update = m_cut.update;
    plan.tensors.resize(m_job.workload.tensors.size());
    return plan;
  }

  /// Which proxy each client uses, in the order of the workers; empty: the ring of the workers.
  using Pattern = std::vector<std::size_t>;

  [[nodiscard]] Pattern pattern_of(std::size_t tensor) const {
    Pattern pattern;
    const auto bytes = static_cast<double>(m_job.workload.tensors[tensor].bytes());
    for (const ProxyRoute& route : m_routes) {
      pattern.push_back(m_cut.dense ? m_job.devices.front() : route.proxy_of(bytes));
    }
    return pattern;
  }
  [[nodiscard]] std::vector<std::size_t> members_of(const Pattern& pattern) const {
    if (pattern.empty()) {
      return m_job.workers;
    }
    const std::set<std::size_t> proxies(pattern.begin(), pattern.end());
    return {proxies.begin(), proxies.end()};
  }

  /// The way round the ring of a pattern's members to `owner` (its number among them) and back
  /// round to all, in one of the two m_cut.directions; clients hang from their proxies.
  [[nodiscard]] SumTree tree_of(const Pattern& pattern, std::size_t owner, bool backwards) const {
    const std::vector<std::size_t> members = members_of(pattern);
    const std::size_t n = members.size(), ranks = m_job.ranks();
    SumTree tree;
    tree.scheme = pattern.empty() ? fmt::format("workers' ring to rank {}", members[owner])
                  : n == 1        ? fmt::format("proxy rank {}", members[owner])
                                  : fmt::format("proxies' ring{} to rank {}",
                                         backwards ? " backwards" : "", members[owner]);
    tree.up.assign(ranks, k_no_rank);
    tree.down.assign(ranks, k_no_rank);
    const auto place = [&](std::size_t steps) { // from the owner on, in the ring's direction
      return members[(owner + (backwards ? n - steps % n : steps)) % n];
    };
    for (std::size_t s = 0; s < n; ++s) {
      tree.up[place(s)] = static_cast<std::int64_t>(s == 0 ? place(0) : place(s + 1));
      tree.down[place(s)] = static_cast<std::int64_t>(s == 0 ? place(0) : place(s - 1));
    }
    for (std::size_t c = 0; c < pattern.size(); ++c) {
      tree.up[m_job.workers[c]] = tree.down[m_job.workers[c]] =
          static_cast<std::int64_t>(pattern[c]);
    }
    return tree;
  }

  /// In gradient order, or by priority: what goes through the proxies and what goes round the
  /// workers' ring each as a link would best take it that moves all of it in m_cut.traffic_s.
  [[nodiscard]] std::vector<std::size_t> order_of_tensors() const {
    const std::size_t all = m_job.tensors();
    std::vector<std::size_t> order = indices(all);
    if (!m_cut.traffic_s) {
      return order;
    }
    std::vector<double> ready(all);
    std::partial_sum(m_job.passes->backward_seconds.begin(), m_job.passes->backward_seconds.end(),
                     ready.begin());
    order.clear();
    for (const auto& [first, end] :
         {std::pair(std::size_t{0}, m_cut.boundary), std::pair(m_cut.boundary, all)}) {
      const double bytes = m_job.bytes_before(end) - m_job.bytes_before(first);
      std::vector<double> takes;
      for (std::size_t t = first; t < end; ++t) {
        takes.push_back((m_job.ends[t] - m_job.bytes_before(t)) / bytes * *m_cut.traffic_s);
      }
      for (const std::size_t t :
           latest_first(std::span(ready).subspan(first, end - first), takes)) {
        order.push_back(first + t);
      }
    }
    return order;
  }

  const Job& m_job;
  const Ways& m_ways;
  const std::vector<ProxyRoute>& m_routes;
  const TreeCut& m_cut;
};

} // namespace

Plan cut_into_trees(const Job& job, const Ways& ways, const std::vector<ProxyRoute>& routes,
                    const TreeCut& cut) {
  return Cutter(job, ways, routes, cut).cut();
}

} // namespace reckon
