// SPDX-License-Identifier: Apache-2.0
#include "simulate/coarsen.hpp"

#include "simulate/equal_shares.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// What parts have in common that may be one: server, lane, tree, run of one element type.
using Stream = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::size_t>;

Stream stream_of(const Plan& plan, std::size_t part) {
  const Parts& parts = plan.parts;
  const auto after =
      std::upper_bound(plan.runs.begin(), plan.runs.end(), parts.offset_bytes[part],
                       [](std::uint64_t at, const DTypeRun& run) { return at < run.offset_bytes; });
  return {parts.server[part], parts.lane[part], parts.tree.empty() ? 0 : parts.tree[part],
          static_cast<std::size_t>(after - plan.runs.begin())};
}

/// Adds a part with the place of another's.
void append_part(Parts& to, const Parts& from, std::size_t part, std::uint64_t offset_bytes,
                 std::uint64_t bytes) {
  to.offset_bytes.push_back(offset_bytes);
  to.bytes.push_back(bytes);
  to.server.push_back(from.server[part]);
  to.lane.push_back(from.lane[part]);
  if (!from.tree.empty()) {
    to.tree.push_back(from.tree[part]);
  }
}

/// Parts of a stream, the mean.
double waves_of(const Plan& plan) {
  std::set<Stream> streams;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    streams.insert(stream_of(plan, p));
  }
  return streams.empty()
             ? 1
             : static_cast<double>(plan.parts.size()) / static_cast<double>(streams.size());
}

} // namespace

MergedPlan with_merged_parts(const Plan& plan, std::uint64_t factor) {
  if (factor <= 1) {
    return {plan, std::vector<std::uint32_t>(plan.parts.size(), 1)};
  }
  MergedPlan result{plan, {}};
  Plan& merged = result.plan;
  merged.parts = {};
  merged.tensors.clear();
  struct Open {
    std::size_t part = 0; ///< of the merged plan
    std::uint64_t parts = 0, end = 0;
  };
  std::map<Stream, Open> open;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    const Stream stream = stream_of(plan, p);
    Open& into = open[stream];
    if (into.parts == 0 || into.parts == factor) {
      into = {merged.parts.size(), 0, 0};
      append_part(merged.parts, plan.parts, p, 0, 0);
      result.parts.push_back(0);
    }
    ++into.parts;
    ++result.parts[into.part];
    into.end = std::max(into.end, plan.parts.offset_bytes[p] + plan.parts.bytes[p]);
    merged.parts.bytes[into.part] += plan.parts.bytes[p];
    // Its gradient is there with the last of its layers.
    merged.parts.offset_bytes[into.part] = into.end - merged.parts.bytes[into.part];
  }
  for (const std::uint64_t bytes : merged.parts.bytes) {
    merged.part_bytes = std::max(merged.part_bytes, bytes);
  }
  return result;
}

double merging_error(const Plan& plan, const Plan& merged) {
  const auto under_way = [](const Plan& p) {
    const std::uint64_t lanes =
        p.parts.lane.empty() ? 1 : 1 + *std::max_element(p.parts.lane.begin(), p.parts.lane.end());
    return std::min(1.0, static_cast<double>(p.window_parts * lanes) /
                             static_cast<double>(std::max<std::size_t>(1, p.parts.size())));
  };
  constexpr double k_unequal_shares = 3;
  return std::max(0.0, 1 / waves_of(merged) - 1 / waves_of(plan)) +
         k_unequal_shares * std::max(0.0, under_way(merged) - under_way(plan));
}

Plan sample_of(const Plan& plan) {
  constexpr double k_sample_writes = 2e5;
  double moved = 0;
  for (const PlanRank& rank : plan.ranks) {
    moved += static_cast<double>(rank.egress_bytes);
  }
  const double writes = moved / std::max(1.0, static_cast<double>(plan.part_bytes));
  const auto step = static_cast<std::size_t>(1 + writes / k_sample_writes);
  Plan sample = plan;
  sample.parts = {};
  sample.tensors.clear();
  for (std::size_t p = 0; p < plan.parts.size(); p += step) {
    append_part(sample.parts, plan.parts, p, plan.parts.offset_bytes[p], plan.parts.bytes[p]);
  }
  return sample;
}

double writes_of(const Plan& plan, const std::function<Schedule(const Plan&)>& lower) {
  const Plan sample = sample_of(plan);
  double writes = 0;
  const Schedule schedule = lower(sample);
  for (const RankProgram& rank : schedule.ranks) {
    for (const LaneProgram& lane : rank.lanes) {
      writes +=
          static_cast<double>(std::count_if(lane.ops().begin(), lane.ops().end(),
                                            [](const Op& op) { return op.kind == OpKind::write; }));
    }
  }
  return writes * static_cast<double>(plan.parts.size()) /
         static_cast<double>(std::max<std::size_t>(1, sample.parts.size()));
}

double simulation_cost_seconds(const SimGraph& graph) {
  // Connections: what may be under way at once, at most.
  std::set<std::pair<std::size_t, std::uint32_t>> connections;
  double writes = 0, flows = 0;
  double together = 0; // each flow's end is felt by all flows, and a write's flows end one by one
  for (std::size_t lane = 0; lane < graph.lanes(); ++lane) {
    for (std::uint32_t i = graph.lane_begin[lane]; i < graph.lane_begin[lane + 1]; ++i) {
      if (graph.ops[i].kind == SimGraph::Kind::write) {
        connections.emplace(lane, graph.ops[i].target);
        ++writes;
        const auto hops = static_cast<double>(graph.paths[graph.ops[i].target].hops.size());
        flows += hops;
        together += hops * hops;
      }
    }
  }
  constexpr double k_op_s = 1e-6;
  const double ops_s = static_cast<double>(graph.ops.size()) * k_op_s;
  if (!graph.simgrid && stations_are_apart(graph)) {
    constexpr double k_flow_s = 1e-6;
    return ops_s + flows * k_flow_s;
  }
  constexpr double k_write_s = 5e-6, k_write_and_flow_s = 2e-8;
  return ops_s + writes * k_write_s +
         together * static_cast<double>(connections.size()) * k_write_and_flow_s;
}

} // namespace reckon
