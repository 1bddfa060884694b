// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/prediction.hpp"

#include "strategies/checkpoint_cost.hpp"
#include "strategies/lower.hpp"
#include "strategies/predict.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace reckon {
namespace {

/// On one machine the processors take turns at the steps, too.
void add_shared_update(const Plan& plan, const ProxyJob& job, const CostModel& model,
                       Prediction& p) {
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

Load load_of_trees(const Plan& plan, const Schedule& schedule) {
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
          const bool gradient =
              plan.ranks[op.peer].worker && op.destination.buffer == k_gradient_buffer;
          load.slot_bytes += gradient ? 0 : bytes;
        } else if (op.kind == OpKind::reduce) {
          load.summed_bytes[r] += bytes * (op.source_count - 1);
          load.operands = std::max<std::size_t>(load.operands, op.source_count);
        }
      }
    }
  }
  return load;
}

void predict_trees(Plan& plan, const ProxyJob& job, const ProxyWays& ways,
                   std::uint64_t window_parts, const PlayEffort& effort) {
  plan.window_parts = window_parts;
  const Schedule schedule = lower(plan);
  const Traffic traffic = traffic_of(schedule);
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
  if (ways.model().one_machine()) {
    p = predict_shared(ways.model(), load_of_trees(plan, schedule), shape);
    lower_bound(p, ways.least());
    add_shared_update(plan, job, ways.model(), p);
    if (plan.passes) {
      add_passes(p, *plan.passes, std::nullopt);
    }
    return;
  }
  p = {};
  Between between = ways.between(shape.part_bytes);
  raise_bound(p, schedule, between);
  p.relief = relief_of(plan);
  p.lo_seconds = p.mid_seconds = p.hi_seconds = p.bound_seconds / ways.efficiency(shape.part_bytes);
  p.terms = {{"transport", p.mid_seconds}, {"fill", 0}};
  lower_bound(p, ways.least());
  std::optional<double> played;
  if (shape.part_count * job.writes_per_part() <= effort.most_writes) {
    const double moved = std::accumulate(
        traffic.egress_bytes.begin(), traffic.egress_bytes.end(), 0.0,
        [](double sum, std::uint64_t bytes) { return sum + static_cast<double>(bytes); });
    const PlayNetwork network = in_pieces(std::move(between.network), moved, effort.most_pieces);
    played = play(schedule, network, ways.op_cost(shape.part_bytes)).total_seconds;
  }
  if (plan.passes) {
    add_passes(p, *plan.passes, played);
  } else if (played) {
    replace_by_played(p, *played);
  }
  const auto [slow, fast] = ways.port_spread();
  p.lo_seconds = std::max(p.bound_seconds, std::min(p.lo_seconds, p.mid_seconds / fast));
  p.hi_seconds = std::max(p.hi_seconds, p.mid_seconds / slow);
}

std::optional<Quantity> checkpoint_cost(const Plan& plan, const ProxyJob& job,
                                        const ProxyWays& ways) {
  const Schedule schedule = lower(plan);
  const auto part_bytes = static_cast<double>(plan.part_bytes);
  const std::vector<double> saved = saved_bytes(schedule);
  for (std::size_t r = 0; r < saved.size(); ++r) {
    if (saved[r] > 0 && plan.ranks[r].endpoint_kind == "gpu") {
      return std::nullopt; // how fast GPUs copy is in no profile
    }
  }
  if (ways.model().one_machine()) {
    return shared_checkpoint_cost(ways.model(), saved, part_bytes);
  }
  if (static_cast<double>(plan.parts.size()) * job.writes_per_part() > k_thorough.most_writes) {
    return std::nullopt;
  }
  return played_checkpoint_cost(ways.model(), schedule, ways.between(part_bytes).network,
                                ways.op_cost(part_bytes), part_bytes);
}

} // namespace reckon
