// SPDX-License-Identifier: Apache-2.0
#include "simulate/fold.hpp"

#include "core/error.hpp"
#include "simulate/coarsen.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
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
  Likeness likeness{{r.machine, r.rack, r.endpoint, r.server, r.lanes, r.port_bytes_per_second},
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

std::uint64_t least_divisor(std::uint64_t n) {
  for (std::uint64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) {
      return d;
    }
  }
  return n;
}

/// Ranks that neither sum nor pass anything on, by what they have in common.
std::map<Likeness, std::vector<std::uint32_t>> groups_of(const Plan& plan,
                                                         const std::vector<std::uint32_t>& kept) {
  std::set<std::int64_t> busy(plan.parts.server.begin(), plan.parts.server.end());
  busy.insert(kept.begin(), kept.end());
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

} // namespace

FoldedPlan fold_ranks(const Plan& plan, const std::function<Schedule(const Plan&)>& lower,
                      const std::vector<std::uint32_t>& kept) {
  std::vector<std::uint64_t> copies(plan.ranks.size(), 1); // 0: played by another
  std::vector<std::uint32_t> by(plan.ranks.size());
  std::iota(by.begin(), by.end(), 0U);
  // Asynchronous workers are not alike: each goes on without the others.
  if (!plan.asynchronous && !plan.one_queue) {
    const Schedule sample = lower(sample_of(plan));
    for (const auto& [likeness, group] : groups_of(plan, kept)) {
      const std::set<std::uint32_t> members(group.begin(), group.end());
      const std::uint64_t played = least_divisor(group.size());
      const bool alike = std::all_of(group.begin(), group.end(), [&](std::uint32_t r) {
        return do_the_same(sample.ranks[group.front()], sample.ranks[r], members);
      });
      if (!alike || played == group.size()) {
        continue;
      }
      for (std::size_t i = 0; i < group.size(); ++i) {
        copies[group[i]] = i < played ? group.size() / played : 0;
        by[group[i]] = group[i % played];
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
  out.stations.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  out.flows = out.stations.paths;
  for (std::size_t i = 0; i < ranks; ++i) {
    for (std::size_t j = 0; j < ranks; ++j) {
      const auto& path = network.stations.paths[folded.rank[i]][folded.rank[j]];
      out.stations.paths[i][j] = path;
      for (std::size_t hop = 0; hop < path.size(); ++hop) {
        std::set<std::uint32_t> stations; // where copies of the write pass at this hop
        std::size_t others = 0;
        for (const std::uint32_t a : members[i]) {
          for (const std::uint32_t b : members[j]) {
            const auto& way = network.stations.paths[a][b];
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
