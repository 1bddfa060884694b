// SPDX-License-Identifier: Apache-2.0
#include "simulate/fold.hpp"

#include "core/error.hpp"
#include "simulate/coarsen.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

/// What may differ in no rank of a group: where it is, and by tree who is above it.
using Likeness = std::pair<std::tuple<std::string, std::string, std::string, bool, int, double>,
                           std::vector<std::pair<std::int64_t, std::int64_t>>>;

Likeness likeness_of(const Plan& plan, std::size_t rank) {
  const PlanRank& r = plan.ranks[rank];
  Likeness likeness{{r.machine, r.rack, r.place_name(), r.server, r.lanes, r.port_bytes_per_second},
                    {}};
  for (const SumTree& tree : plan.trees) {
    likeness.second.emplace_back(tree.up[rank], tree.down[rank]);
  }
  return likeness;
}

/// Whether the ranks do the same with the same peers, and those are not among themselves.
bool do_the_same(const RankProgram& a, const RankProgram& b, const std::set<std::uint32_t>& group) {
  const auto same_lane = [&](const LaneProgram& x, const LaneProgram& y) {
    if (x.ops().size() != y.ops().size()) {
      return false;
    }
    for (std::size_t i = 0; i < x.ops().size(); ++i) {
      const Op &p = x.ops()[i], &q = y.ops()[i];
      const auto before = x.dependencies(i), same_before = y.dependencies(i);
      const bool talks = p.kind == OpKind::write || p.kind == OpKind::await;
      if (p.kind != q.kind || p.bytes != q.bytes || p.part != q.part ||
          p.source_count != q.source_count || p.duration_ns != q.duration_ns ||
          (talks && (p.peer != q.peer || group.contains(p.peer))) ||
          !std::equal(before.begin(), before.end(), same_before.begin(), same_before.end())) {
        return false;
      }
    }
    return true;
  };
  return std::equal(a.lanes.begin(), a.lanes.end(), b.lanes.begin(), b.lanes.end(), same_lane);
}

/// How fast writes are between a rank and others, with what the scenario slows.
class Ways {
public:
  Ways(const SimNetwork& network, const Scenario& scenario)
      : m_network(network.stations),
        m_kept(scenario.kept_rates(m_network.station_bytes_per_s.size())) {}
  /// Whether the ways of ranks `a` and `b` to and from all but the group's are as fast.
  [[nodiscard]] bool alike(std::uint32_t a, std::uint32_t b,
                           const std::set<std::uint32_t>& group) const {
    for (std::uint32_t peer = 0; peer < m_network.paths.size(); ++peer) {
      if (!group.contains(peer) && !(alike(a, peer, b, peer) && alike(peer, a, peer, b))) {
        return false;
      }
    }
    return true;
  }

private:
  [[nodiscard]] bool alike(std::uint32_t from, std::uint32_t to, std::uint32_t other_from,
                           std::uint32_t other_to) const {
    for (std::size_t way = 0; way < m_network.ways(); ++way) {
      const auto &x = m_network.path(way, from, to), &y = m_network.path(way, other_from, other_to);
      if (!std::equal(
              x.begin(), x.end(), y.begin(), y.end(),
              [&](std::uint32_t s, std::uint32_t t) { return s == t || same_rate(s, t); })) {
        return false;
      }
    }
    return m_network.latency_of(from, to) == m_network.latency_of(other_from, other_to);
  }
  [[nodiscard]] bool same_rate(std::uint32_t s, std::uint32_t t) const {
    const auto curve = [&](std::uint32_t station) {
      return m_network.station_busy.empty() ? std::span<const std::pair<double, double>>()
                                            : m_network.station_busy[station].points();
    };
    const auto x = curve(s), y = curve(t);
    return m_network.station_bytes_per_s[s] == m_network.station_bytes_per_s[t] &&
           m_kept[s] == m_kept[t] && std::equal(x.begin(), x.end(), y.begin(), y.end());
  }

  const StationNetwork& m_network;
  std::vector<double> m_kept; ///< by station, of its rate
};

std::uint64_t least_divisor(std::uint64_t n) {
  for (std::uint64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) {
      return d;
    }
  }
  return n;
}

/// Ranks that neither sum nor pass anything on, nor are named by the scenario, by what they have in
/// common.
std::map<Likeness, std::vector<std::uint32_t>> groups_of(const Plan& plan,
                                                         const Scenario& scenario) {
  std::set<std::int64_t> busy(plan.parts.server.begin(), plan.parts.server.end());
  for (const auto& [rank, factor] : scenario.stragglers) {
    busy.insert(rank);
  }
  for (const Scenario::Background& background : scenario.backgrounds) {
    busy.insert({background.from, background.to});
  }
  for (const SumTree& tree : plan.trees) {
    busy.insert(tree.up.begin(), tree.up.end());
    busy.insert(tree.down.begin(), tree.down.end());
  }
  std::map<Likeness, std::vector<std::uint32_t>> groups;
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.ranks[r].worker && !busy.contains(r)) {
      groups[likeness_of(plan, r)].push_back(r);
    }
  }
  return groups;
}

/// Those of a group that do the same over ways as fast, by the first of them.
std::vector<std::vector<std::uint32_t>> alike_in(const std::vector<std::uint32_t>& group,
                                                 const Schedule& sample, const Ways& ways) {
  const std::set<std::uint32_t> members(group.begin(), group.end());
  std::vector<std::vector<std::uint32_t>> alike;
  for (const std::uint32_t r : group) {
    const auto found = std::find_if(alike.begin(), alike.end(), [&](const auto& some) {
      return ways.alike(some.front(), r, members) &&
             do_the_same(sample.ranks[some.front()], sample.ranks[r], members);
    });
    if (found != alike.end()) {
      found->push_back(r);
    } else {
      alike.push_back({r});
    }
  }
  return alike;
}

} // namespace

FoldedPlan unfolded(const Plan& plan) {
  FoldedPlan all{plan, {}, {}, {}};
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    all.rank.push_back(r);
    all.copies.push_back(1);
    all.representative.push_back(r);
  }
  return all;
}

FoldedPlan fold_ranks(const Plan& plan, const std::function<Schedule(const Plan&)>& lower,
                      const SimNetwork& network, const Scenario& scenario) {
  // Asynchronous workers are not alike: each goes on without the others. Every node of a torus is
  // somebody's neighbour.
  if (plan.asynchronous || plan.one_queue || plan.torus) {
    return unfolded(plan);
  }
  std::vector<std::uint64_t> copies(plan.ranks.size(), 1); // 0: played by another
  std::vector<std::uint32_t> by(plan.ranks.size());
  std::iota(by.begin(), by.end(), 0U);
  const Schedule sample = lower(sample_of(plan));
  const Ways ways(network, scenario);
  for (const auto& [likeness, group] : groups_of(plan, scenario)) {
    for (const std::vector<std::uint32_t>& alike : alike_in(group, sample, ways)) {
      const std::uint64_t played = least_divisor(alike.size());
      for (std::size_t i = 0; i < alike.size(); ++i) {
        copies[alike[i]] = i < played ? alike.size() / played : 0;
        by[alike[i]] = alike[i % played];
      }
    }
  }
  FoldedPlan folded{plan, {}, {}, std::vector<std::uint32_t>(plan.ranks.size())};
  std::vector<std::int64_t> number(plan.ranks.size(), -1);
  folded.plan.ranks.clear();
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    if (copies[r] > 0) {
      number[r] = static_cast<std::int64_t>(folded.rank.size());
      folded.rank.push_back(r);
      folded.copies.push_back(copies[r]);
      folded.plan.ranks.push_back(plan.ranks[r]);
    }
  }
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    folded.representative[r] = static_cast<std::uint32_t>(number[by[r]]);
  }
  for (std::uint64_t& server : folded.plan.parts.server) {
    server = static_cast<std::uint64_t>(number[server]);
  }
  if (has_root(plan.collective)) { // it sums or gives, so that nobody else plays it
    folded.plan.root = static_cast<std::uint64_t>(number[plan.root]);
  }
  for (SumTree& tree : folded.plan.trees) {
    for (auto* const parents : {&tree.up, &tree.down}) {
      std::vector<std::int64_t> of_played;
      for (const std::uint32_t r : folded.rank) {
        const std::int64_t parent = (*parents)[r];
        of_played.push_back(parent < 0 ? parent : number[static_cast<std::size_t>(parent)]);
      }
      *parents = std::move(of_played);
    }
  }
  folded.plan.routing.clear();
  return folded;
}

namespace {

struct FoldedPaths {
  StationPaths paths, flows;
};

/// The ways of the ranks played, and how many of the writes that one stands for pass each station;
/// `members` are the ranks that each plays.
FoldedPaths fold_paths(const StationPaths& paths, const FoldedPlan& folded,
                       const std::vector<std::vector<std::uint32_t>>& members) {
  const std::size_t ranks = folded.rank.size();
  FoldedPaths out;
  out.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  out.flows = out.paths;
  for (std::size_t i = 0; i < ranks; ++i) {
    for (std::size_t j = 0; j < ranks; ++j) {
      const auto& path = paths[folded.rank[i]][folded.rank[j]];
      out.paths[i][j] = path;
      for (std::size_t hop = 0; hop < path.size(); ++hop) {
        std::set<std::uint32_t> stations; // where copies of the write pass at this hop
        std::size_t others = 0;
        for (const std::uint32_t a : members[i]) {
          for (const std::uint32_t b : members[j]) {
            const auto& way = paths[a][b];
            if (hop < way.size()) {
              stations.insert(way[hop]);
            }
            others += i == j && a == b ? 0U : 1U;
          }
        }
        out.flows[i][j].push_back(static_cast<std::uint32_t>(others / stations.size()));
      }
    }
  }
  return out;
}

} // namespace

SimNetwork fold_network(const SimNetwork& network, const FoldedPlan& folded) {
  const std::size_t ranks = folded.rank.size();
  if (ranks == folded.representative.size()) {
    return network;
  }
  std::vector<std::vector<std::uint32_t>> members(ranks);
  for (std::uint32_t r = 0; r < folded.representative.size(); ++r) {
    members[folded.representative[r]].push_back(r);
  }
  SimNetwork out = network;
  out.copies = folded.copies;
  FoldedPaths whole = fold_paths(network.stations.paths, folded, members);
  out.stations.paths = std::move(whole.paths);
  out.flows = {std::move(whole.flows)};
  if (!network.stations.lane_paths.empty()) {
    out.flows.clear();
    for (StationPaths& paths : out.stations.lane_paths) {
      FoldedPaths way = fold_paths(paths, folded, members);
      paths = std::move(way.paths);
      out.flows.push_back(std::move(way.flows));
    }
  }
  if (!network.stations.path_latency_s.empty()) {
    out.stations.path_latency_s.assign(ranks, std::vector<double>(ranks));
    for (std::size_t i = 0; i < ranks; ++i) {
      for (std::size_t j = 0; j < ranks; ++j) {
        out.stations.path_latency_s[i][j] =
            network.stations.path_latency_s[folded.rank[i]][folded.rank[j]];
      }
    }
  }
  out.op_seconds = [whole = network.op_seconds, rank = folded.rank](std::size_t r, const Op& op) {
    return whole(rank[r], op);
  };
  return out;
}

Scenario fold_scenario(Scenario scenario, const FoldedPlan& folded) {
  for (auto& [rank, factor] : scenario.stragglers) {
    rank = folded.representative[rank];
  }
  for (Scenario::Background& background : scenario.backgrounds) {
    background.from = folded.representative[background.from];
    background.to = folded.representative[background.to];
  }
  return scenario;
}

} // namespace reckon
