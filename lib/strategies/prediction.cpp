// SPDX-License-Identifier: Apache-2.0
#include "strategies/prediction.hpp"

#include "strategies/lower.hpp"
#include "strategies/one_machine.hpp"
#include "strategies/parts.hpp"
#include "strategies/predict.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

/// On one machine the processors take turns at the steps, too.
void add_shared_update(const Plan& plan, const Job& job, const CostModel& model, Prediction& p) {
  if (!plan.update) {
    return;
  }
  const auto cores = static_cast<int>(model.cores());
  const double stepped =
      job.bytes() *
      (plan.update->place == UpdatePlace::worker ? static_cast<double>(job.workers.size()) : 1);
  const Rate rate = model.step_rate(model.ranks().front().machine, plan.update->optimizer, cores);
  const auto threads = static_cast<double>(cores);
  p.lo_seconds += stepped / (rate.hi * threads);
  p.mid_seconds += stepped / (rate.mid * threads);
  p.hi_seconds += stepped / (rate.lo * threads);
  p.terms.push_back({"update", stepped / (rate.mid * threads)});
}

/// Says what would make the busiest place less busy.
std::string relief_of(const Plan& plan) {
  return plan.strategy == "dense"
             ? "one device has all traffic: more devices (--strategy coarse), or a faster port "
               "there"
             : "a faster way there, or fewer bytes on it: another dual split (--proxy-bytes), more "
               "memory devices";
}

} // namespace

Load load_of(const Plan& plan, const Schedule& schedule) {
  Load load;
  const std::size_t ranks = plan.ranks.size();
  load.egress_bytes.assign(ranks, 0);
  load.ingress_bytes.assign(ranks, 0);
  load.summed_bytes.assign(ranks, 0);
  for (std::size_t r = 0; r < ranks; ++r) {
    for (const LaneProgram& lane : schedule.ranks[r].lanes) {
      for (const Op& op : lane.ops()) {
        const auto bytes = static_cast<double>(op.bytes);
        if (op.kind == OpKind::write) {
          load.egress_bytes[r] += bytes;
          load.ingress_bytes[op.peer] += bytes;
        } else if (op.kind == OpKind::reduce) {
          load.summed_bytes[r] += bytes * (op.source_count - 1);
          load.operands = std::max<std::size_t>(load.operands, op.source_count);
        } else if (op.kind == OpKind::narrow || op.kind == OpKind::widen) {
          load.summed_bytes[r] += bytes; // as long as a sum of two
        }
      }
    }
  }
  return load;
}

Plan together(const Plan& plan) {
  using Alike = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>; // server, tree, lane
  std::map<Alike, std::uint64_t> bytes;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    bytes[{plan.parts.server[p], plan.parts.tree.empty() ? 0 : plan.parts.tree[p],
           plan.parts.lane[p]}] += plan.parts.bytes[p];
  }
  Plan few;
  few.strategy = plan.strategy;
  few.ranks = plan.ranks;
  few.runs = plan.runs;
  few.wire = plan.wire;
  few.gradient_bytes = plan.gradient_bytes;
  few.ring_order = plan.ring_order;
  few.groups = plan.groups;
  few.collective = plan.collective;
  few.root = plan.root;
  few.trees = plan.trees;
  few.torus = plan.torus;
  few.machine_trees = plan.machine_trees;
  std::uint64_t offset = 0;
  for (const auto& [of, count] : bytes) {
    few.parts.offset_bytes.push_back(offset);
    few.parts.bytes.push_back(count);
    few.parts.server.push_back(std::get<0>(of));
    few.parts.lane.push_back(std::get<2>(of));
    if (!plan.parts.tree.empty()) {
      few.parts.tree.push_back(std::get<1>(of));
    }
    few.part_bytes = std::max(few.part_bytes, count);
    offset += count;
  }
  return few;
}

namespace {

std::size_t writes_of(const Schedule& schedule) {
  std::size_t writes = 0;
  for (const RankProgram& rank : schedule.ranks) {
    for (const LaneProgram& lane : rank.lanes) {
      writes += static_cast<std::size_t>(
          std::count_if(lane.ops().begin(), lane.ops().end(),
                        [](const Op& op) { return op.kind == OpKind::write; }));
    }
  }
  return writes;
}

} // namespace

std::optional<double> played_seconds(const Plan& plan, const Between& between, const OpCost& cost,
                                     double writes, double steady_s, const PlayEffort& effort) {
  if (writes <= effort.most_writes) {
    return play(lower(plan), between.network, cost).total_seconds;
  }
  const auto parts = static_cast<double>(plan.parts.size());
  const auto longer = static_cast<std::size_t>(parts_of_beginning(parts, writes, effort));
  if (!effort.beginnings || plan.passes || longer < 2) {
    return std::nullopt;
  }
  struct Begun {
    double seconds = 0, steady_s = 0, middle_half_s = 0;
  };
  const auto begun = [&](std::size_t count) {
    const Schedule schedule = lower(beginning(plan, count));
    const PlayResult played = play(schedule, between.network, cost);
    return Begun{played.total_seconds, busiest_station(schedule, between).seconds,
                 played.middle_half_seconds};
  };
  const Begun with_longer = begun(longer), with_shorter = begun(longer / 2);
  const auto count = static_cast<double>(longer), rest = parts - count;
  // The rest goes on as the middle of the longer one; or it takes what its busiest station needs,
  // and as much more as the longer beginning had more of it than the shorter. Both see the network
  // fill, and so too much: the truth is nearer to the less of them.
  const double as_its_middle = with_longer.seconds + rest * 2 * with_longer.middle_half_s / count;
  const double beyond = with_longer.seconds - with_longer.steady_s;
  const double growth = std::max(0.0, beyond - (with_shorter.seconds - with_shorter.steady_s)) /
                        static_cast<double>(longer - longer / 2);
  return std::min(as_its_middle, steady_s + beyond + growth * rest);
}

void predict(Plan& plan, const Job& job, const Ways& ways, std::uint64_t window_parts,
             const PlayEffort& effort) {
  plan.window_parts = window_parts;
  const Plan few = together(plan);
  const Schedule whole = lower(few);
  const Traffic traffic = traffic_of(whole);
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    plan.ranks[r].egress_bytes = traffic.egress_bytes[r];
    plan.ranks[r].ingress_bytes = traffic.ingress_bytes[r];
  }
  PartShape shape;
  shape.part_bytes = static_cast<double>(plan.part_bytes);
  shape.part_count = static_cast<double>(plan.parts.size());
  shape.window_parts = static_cast<double>(window_parts);
  shape.dtype = job.workload.tensors.front().dtype;
  Prediction& p = plan.prediction;
  const auto credit = [&] { // by priority: all may be under way
    return in_gradient_order(plan.parts) ? std::nullopt : std::optional(p.mid_seconds);
  };
  if (ways.one_machine()) {
    p = predict_on_machine(ways.model(), load_of(few, whole), shape, false);
    lower_bound(p, ways.least());
    add_shared_update(plan, job, ways.model(), p);
    if (plan.passes) {
      const double traffic_s = p.mid_seconds;
      add_passes(p, *plan.passes, plan.parts, std::nullopt, credit());
      share_processors(p, *plan.passes, traffic_s, ways.model());
    }
    return;
  }
  p = {};
  Between between = ways.between(shape.part_bytes);
  raise_bound(p, whole, between);
  const double steady_s = p.bound_seconds;
  p.relief = relief_of(plan);
  p.lo_seconds = p.mid_seconds = p.hi_seconds = steady_s / ways.efficiency(shape.part_bytes);
  p.terms = {{"transport", p.mid_seconds}, {"fill", 0}};
  lower_bound(p, ways.least());
  const double writes = static_cast<double>(writes_of(whole)) * shape.part_count /
                        static_cast<double>(few.parts.size());
  const double moved = std::accumulate(
      traffic.egress_bytes.begin(), traffic.egress_bytes.end(), 0.0,
      [](double sum, std::uint64_t bytes) { return sum + static_cast<double>(bytes); });
  const double played_part = std::min(1.0, effort.most_writes / writes);
  between.network = in_pieces(std::move(between.network), moved * played_part, effort.most_pieces);
  std::optional<double> played =
      played_seconds(plan, between, ways.op_cost(shape.part_bytes), writes, steady_s, effort);
  if (played) { // sums keep a memory busy, too, which a play does not know
    played = std::max(*played, steady_s);
  }
  if (plan.passes) {
    add_passes(p, *plan.passes, plan.parts, played, credit());
  } else if (played) {
    replace_by_played(p, *played);
  }
  const auto [slow, fast] = ways.spread(station_bytes(whole, between));
  p.lo_seconds = std::max(p.bound_seconds, std::min(p.lo_seconds, p.mid_seconds / fast));
  p.hi_seconds = std::max(p.hi_seconds, p.mid_seconds / slow);
}

void choose_update_place(Plan& plan, const Job& job, const Ways& ways,
                         std::optional<UpdatePlace> asked, const PlayEffort& effort) {
  if (!plan.update || asked || job.workers.size() == 1) {
    return;
  }
  Plan other = plan;
  const bool at_server = plan.update->place == UpdatePlace::server;
  other.update->place = at_server ? UpdatePlace::worker : UpdatePlace::server;
  predict(other, job, ways, other.window_parts, effort);
  constexpr double k_worth_moving = 0.01;
  if (other.prediction.mid_seconds < plan.prediction.mid_seconds * (1 - k_worth_moving)) {
    plan = std::move(other);
  }
}

} // namespace reckon
