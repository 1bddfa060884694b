// SPDX-License-Identifier: Apache-2.0
#include "strategies/predict.hpp"

#include "core/units.hpp"
#include "equations/ring.hpp"
#include "strategies/one_machine.hpp"
#include "strategies/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace reckon {
namespace {

double sum(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}

void set(Prediction& p, Estimate e, double seconds) {
  (e == Estimate::lo ? p.lo_seconds : e == Estimate::mid ? p.mid_seconds : p.hi_seconds) = seconds;
}

/// What a prediction on ports adds up.
struct PortTimes {
  double transport_s = 0;
  double reduction_s = 0; ///< beyond what goes on beside the transport
  double fill_s = 0;
  double part_sum_s = 0; ///< of the fill, what lanes add up of one part; servers only
};

double lane_rate_of(const CostModel& model, const RankModel& rank, const PartShape& shape,
                    std::size_t operands, Estimate e) {
  return model.sum_rate(rank, shape.dtype, operands, shape.part_bytes).slow_to_fast(e);
}

/// What the slowest uplink takes.
double uplink_seconds(const CostModel& model, const Load& load, Estimate e) {
  return load.uplink_seconds / model.uplink_share(load.slowest_uplink).slow_to_fast(e);
}

/// Equation 14.
PortTimes server_times(const CostModel& model, const Load& load, const PartShape& shape,
                       Estimate e) {
  PortTimes times;
  const double efficiency = model.port_efficiency(shape.part_bytes);
  // Before the first sums come and after the last parts have left, a server waits for one part from
  // each worker and gives one to each; a worker waits for all services.
  double longest = 0;
  for (const auto& [r, count] : load.alike) {
    if (load.egress_bytes[r] <= 0) {
      continue;
    }
    const RankModel& rank = model.ranks()[r];
    const double rate = rank.port_rate(e) * efficiency;
    const double port = load.port_bytes(r) / rate;
    const double lane_rate = lane_rate_of(model, rank, shape, load.operands, e);
    const double summing = load.summed_bytes[r] / (lane_rate * rank.lanes);
    if (std::max(port, summing) > longest) {
      longest = std::max(port, summing);
      times.transport_s = port;
      times.reduction_s = std::max(0.0, summing - port);
    }
    const double one_sum = shape.part_bytes * static_cast<double>(load.operands - 1) / lane_rate;
    times.fill_s = std::max(times.fill_s,
                            load.parts_of_fill * shape.part_bytes / rate + load.levels * one_sum);
    times.part_sum_s = std::max(times.part_sum_s, load.levels * one_sum);
  }
  times.transport_s = std::max(times.transport_s, uplink_seconds(model, load, e) / efficiency);
  times.fill_s += 2 * load.levels * model.latency_s();
  return times;
}

/// A ring of the model's workers for equation 14b, but for what its ports and lanes are busy.
RingSteps ring_of(const CostModel& model, const Load& load, const PartShape& shape, Estimate e) {
  RingSteps steps;
  steps.ranks = 0;
  steps.latency_s = model.mean_latency_s();
  const double efficiency = model.port_efficiency(shape.part_bytes);
  for (const auto& [r, count] : load.alike) { // a part passes each: what counts is their mean
    const RankModel& rank = model.ranks()[r];
    if (rank.worker) {
      steps.ranks += count;
      steps.write_s += count * shape.part_bytes / (rank.port_rate(e) * efficiency);
      steps.sum_s += count * shape.part_bytes / lane_rate_of(model, rank, shape, 2, e);
    }
  }
  steps.write_s /= steps.ranks;
  steps.sum_s /= steps.ranks;
  return steps;
}

/// Equation 14b: what it takes beyond the busiest port and the sums is fill.
PortTimes ring_times(const CostModel& model, const Load& load, const PartShape& shape, Estimate e) {
  const double efficiency = model.port_efficiency(shape.part_bytes);
  RingSteps steps = ring_of(model, load, shape, e);
  PortTimes times;
  times.transport_s = uplink_seconds(model, load, e) / efficiency;
  double summing = 0;
  for (const auto& [r, count] : load.alike) {
    if (load.egress_bytes[r] <= 0) {
      continue;
    }
    const RankModel& rank = model.ranks()[r];
    times.transport_s =
        std::max(times.transport_s, load.port_bytes(r) / (rank.port_rate(e) * efficiency));
    const double lane_rate = lane_rate_of(model, rank, shape, load.operands, e);
    summing = std::max(summing, load.summed_bytes[r] / (lane_rate * rank.lanes));
  }
  times.reduction_s = std::max(0.0, summing - times.transport_s);
  const double hops = steps.ranks - 1, port_step_s = times.transport_s / (2 * hops);
  steps.reduce_step_s = std::max(port_step_s, summing / hops);
  steps.port_step_s = port_step_s;
  if (steps.reduce_step_s > port_step_s) {
    // While a lane sums, a part that it has just summed goes on to the next rank and another comes
    // back: these few go round together, and the others wait. They are handed out beside the sums
    // of the next; only the last few have the ring for themselves.
    const double together = 1 + std::ceil((steps.write_s + steps.latency_s) / steps.sum_s);
    steps.port_step_s =
        std::min(port_step_s, together * model.ranks().front().lanes * steps.write_s);
  }
  const double total = std::max(ring_seconds(steps), times.transport_s + steps.latency_s);
  times.fill_s = std::max(0.0, total - times.transport_s - times.reduction_s);
  return times;
}

Prediction predict_ports(const CostModel& model, const Solution& solution, const Load& load,
                         const PartShape& shape) {
  Prediction p;
  p.bound_seconds = solution.star_seconds;
  p.bound_by = solution.bound_by;
  p.relief = solution.relief;
  if (load.uplink_seconds > p.bound_seconds) {
    p.bound_seconds = load.uplink_seconds;
    p.bound_by = fmt::format(
        "the uplink of rack {}: {} each way at {}", load.slowest_uplink,
        to_text(Bytes(static_cast<std::uint64_t>(load.uplink_bytes.at(load.slowest_uplink)))),
        to_text(Bandwidth::bytes_per_s(model.uplink_bytes_per_s(load.slowest_uplink))));
    p.relief =
        "fewer bytes between the racks: a sum in each rack first, or more servers in each rack";
  }
  // Whole parts may leave the slowest port less than its exact share: then that is the bound.
  p.bound_seconds = std::min(p.bound_seconds, std::max(load.port_seconds, load.uplink_seconds));
  for (const Estimate e : k_estimates) {
    const PortTimes times =
        solution.ring ? ring_times(model, load, shape, e) : server_times(model, load, shape, e);
    // The bound is of the ports' middle rates: no time is below it.
    set(p, e, std::max(p.bound_seconds, times.transport_s + times.reduction_s + times.fill_s));
    if (e == Estimate::mid) {
      p.terms = {{"transport", times.transport_s},
                 {"reduction", times.reduction_s},
                 {"fill", times.fill_s}};
      if (constexpr double k_much = 0.1; times.part_sum_s > k_much * p.mid_seconds) {
        p.relief = fmt::format(
            "shorter parts (--part-bytes): one lane sums the {} operands of a part, which takes "
            "{} that no traffic hides at the end",
            load.operands, to_text(Seconds(times.part_sum_s)));
      }
    }
  }
  return p;
}

} // namespace

double ring_chain_seconds(const CostModel& model, const Load& load, const PartShape& shape) {
  const RingSteps steps = ring_of(model, load, shape, Estimate::mid);
  return steps.ranks < 2 ? 0 : ring_seconds(steps);
}

Prediction predict(const CostModel& model, const Solution& solution, const Load& load,
                   const PartShape& shape) {
  if (sum(load.egress_bytes) == 0) {
    Prediction p;
    p.bound_by = "nothing has to move: one worker's gradient is its own sum";
    p.terms = {{"transport", 0}, {"reduction", 0}, {"fill", 0}};
    return p;
  }
  if (model.one_machine()) {
    return predict_on_machine(model, load, shape, solution.ring);
  }
  return predict_ports(model, solution, load, shape);
}

int lanes_needed(const CostModel& model, const Load& load, DType dtype, double part_bytes,
                 double traffic_share) {
  const double rate = model.reduce_rate(dtype, 1, load.operands, part_bytes).mid;
  double needed = 1;
  for (std::size_t r = 0; r < load.egress_bytes.size(); ++r) {
    const double port_s = load.port_bytes(r) / model.ranks()[r].port_bytes_per_s * traffic_share;
    if (port_s > 0) {
      needed = std::max(needed, std::ceil(load.summed_bytes[r] / rate / port_s - 1e-9));
    }
  }
  return model.lanes_over_ports(
      static_cast<int>(std::min(needed, static_cast<double>(model.cores()))));
}

OpCost op_cost(const CostModel& model, double part_bytes) {
  return [&model, part_bytes](std::size_t rank, const Op& op) {
    const RankModel& r = model.ranks()[rank];
    if (op.kind == OpKind::update) {
      return static_cast<double>(op.bytes) / model.step_rate(r.machine, op.optimizer, r.lanes).mid;
    }
    const std::size_t sources = std::max<std::size_t>(2, op.source_count);
    const DType dtype = op.dtype == DType::int32 ? DType::fp32 : op.dtype;
    const double rate = model.sum_rate(r, dtype, sources, part_bytes).mid;
    return static_cast<double>(op.bytes) * static_cast<double>(sources - 1) / rate;
  };
}

namespace {

/// Traffic beside a backward pass, in the order in which gradients are ready.
struct Overlap {
  double end_s = 0;       ///< when all is over, from the start of the backward pass
  std::size_t layer = 0;  ///< from this one on nothing waits for a gradient
  double ready_s = 0;     ///< when that one's gradient is there
  double part_of_all = 1; ///< of the gradient, from that layer on
};

/// `traffic_s`: of the whole gradient, in which each byte takes as long as any other. What belongs
/// to a layer begins when its gradient is there; with `parts`, each with the layer of its last
/// byte.
Overlap beside_backward_pass(const Passes& passes, double traffic_s, const Parts& parts = {}) {
  Overlap out;
  double ready = 0, before = 0;
  std::size_t next = 0; // part in the order of offsets
  const std::vector<std::size_t> order = parts.by_offset();
  const auto all = static_cast<double>(passes.end_bytes.back());
  for (std::size_t layer = 0; layer < passes.size(); ++layer) {
    ready += passes.backward_seconds[layer];
    const double rest = 1 - before / all;
    if (ready + traffic_s * rest > out.end_s) {
      out = {ready + traffic_s * rest, layer, ready, rest};
    }
    const std::uint64_t end = passes.end_bytes[layer];
    before = static_cast<double>(end);
    if (parts.size() > 0) { // up to the last part that is complete
      while (next < order.size() &&
             parts.offset_bytes[order[next]] + parts.bytes[order[next]] <= end) {
        ++next;
      }
      before = next < order.size() ? static_cast<double>(parts.offset_bytes[order[next]]) : before;
    }
  }
  return out;
}

} // namespace

void add_passes(Prediction& p, const Passes& passes, const Parts& parts,
                const std::optional<double>& played, const std::optional<double>& credit_seconds) {
  const double computed = passes.total_seconds();
  const double forward = sum(passes.forward_seconds), backward = computed - forward;
  const double first = passes.backward_seconds.front();
  const auto all = static_cast<double>(passes.end_bytes.back());
  const double last_layers_part =
      passes.size() == 1 ? 1 : 1 - static_cast<double>(passes.end_bytes[passes.size() - 2]) / all;
  // Without a play: what is left when the backward pass is over. In gradient order the forward pass
  // waits for all of it; by priority for what is under way by then and its first layer's own part,
  // and its last layer for the rest.
  const auto by_formula = [&](double traffic) {
    const double left = beside_backward_pass(passes, traffic, parts).end_s - backward;
    if (credit_seconds) {
      return std::max(backward + std::min(left, *credit_seconds + traffic * last_layers_part) +
                          forward,
                      first + traffic + passes.forward_seconds.front());
    }
    return backward + left + forward;
  };
  const double traffic = p.mid_seconds;
  const double mid = played ? *played : by_formula(traffic);
  const double exposed = std::max(0.0, mid - computed);
  // One worker's gradient is its own sum: then nothing has to move.
  p.lo_seconds = computed + (traffic > 0 ? exposed * p.lo_seconds / traffic : exposed);
  p.hi_seconds = computed + (traffic > 0 ? exposed * p.hi_seconds / traffic : exposed);
  p.mid_seconds = computed + exposed;
  p.lo_seconds = std::min(p.lo_seconds, p.mid_seconds); // but for rounding they are
  p.hi_seconds = std::max(p.hi_seconds, p.mid_seconds);
  p.terms = {{"passes", computed}, {"exposed", exposed}};
  const double after_sums = credit_seconds ? 0 : forward;
  const double busiest_traffic = p.busiest_seconds.value_or(0);
  const Overlap busiest = beside_backward_pass(passes, busiest_traffic, parts);
  if (busiest_traffic > 0 && busiest.end_s + after_sums > computed) {
    p.busiest_seconds = busiest.end_s + after_sums;
  } else {
    p.busiest_seconds.reset();
    p.busiest_by.clear();
  }
  const Overlap least = beside_backward_pass(passes, p.bound_seconds);
  if (p.bound_seconds > 0 && least.end_s + after_sums > computed) {
    p.bound_seconds = least.end_s + after_sums;
    p.bound_by += least.layer == 0
                      ? ", after the first layer's backward pass"
                      : fmt::format(", for the last {:.1f} % of the gradient, which is ready after "
                                    "{}",
                                    100 * least.part_of_all, to_text(Seconds(least.ready_s)));
    p.bound_by += credit_seconds ? "" : ", before the forward pass";
  } else {
    p.bound_seconds = computed;
    p.bound_by = "the passes themselves";
    p.relief = "none from the links";
  }
  p.lo_seconds = std::max(p.lo_seconds, std::min(p.bound_seconds, p.mid_seconds));
}

double exposed_seconds(const Passes& passes, const Parts& parts, double traffic_s) {
  return std::max(0.0, beside_backward_pass(passes, traffic_s, parts).end_s -
                           sum(passes.backward_seconds));
}

double traffic_seconds(const Plan& plan) {
  const Prediction& p = plan.prediction;
  if (!plan.passes) {
    return p.mid_seconds;
  }
  const double predicted = p.mid_seconds - contention_seconds(p) - plan.passes->total_seconds();
  double low = 0, high = sum(plan.passes->backward_seconds) + predicted;
  constexpr int k_halvings = 60;
  for (int i = 0; i < k_halvings; ++i) {
    const double middle = (low + high) / 2;
    (exposed_seconds(*plan.passes, plan.parts, middle) > predicted ? high : low) = middle;
  }
  return low;
}

double exposed_seconds(const Plan& plan, double longer) {
  Passes as_they_were = *plan.passes;
  for (std::size_t l = 1; l < as_they_were.size(); ++l) {
    as_they_were.backward_seconds[l] *= longer;
  }
  return exposed_seconds(as_they_were, plan.parts, traffic_seconds(plan));
}

void replace_by_played(Prediction& p, double seconds) {
  seconds = std::max(seconds, p.bound_seconds);
  const double factor = p.mid_seconds > 0 ? seconds / p.mid_seconds : 1;
  p.lo_seconds = std::clamp(p.lo_seconds * factor, p.bound_seconds, seconds);
  p.mid_seconds = seconds;
  p.hi_seconds = std::max(seconds, p.hi_seconds * factor);
  double steady = 0;
  for (auto& term : p.terms) {
    if (term.name != "fill") {
      steady += term.seconds;
    }
  }
  constexpr double k_rounding = 1e-9;
  const double fill = seconds - steady > k_rounding * seconds ? seconds - steady : 0;
  // Where the play knows faster ways than the formula, what the formula named takes less.
  const double shorter = steady > seconds ? seconds / steady : 1;
  for (auto& term : p.terms) {
    term.seconds = term.name == "fill" ? fill : term.seconds * shorter;
  }
}

} // namespace reckon
