// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/draft.hpp"

#include "equations/fixed_point.hpp"
#include "strategies/lower.hpp"
#include "strategies/parts.hpp"
#include "strategies/prediction.hpp"
#include "strategies/update.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon {
namespace {

/// Equal parts per slot make the shares of the equal-bandwidth split come out exactly: the number
/// of parts should be a multiple of the slots, in lowest terms (equation 9).
std::uint64_t streams(const std::string& strategy, const CostModel& model) {
  const std::uint64_t n = model.workers().size(), k = model.ranks().size() - n;
  if (strategy == "ps_noncolocated") {
    return std::max<std::uint64_t>(1, k);
  }
  if (strategy != "byteps_split") {
    return std::max<std::uint64_t>(1, n);
  }
  const auto slots = slot_counts(n, k);
  if (!slots) {
    return 1;
  }
  const std::uint64_t common = std::gcd(slots->per_worker, slots->per_server);
  return std::max<std::uint64_t>(1, slots->total / std::max<std::uint64_t>(1, common));
}

/// When one rank's port is done if it owns `bytes` (equation 5); in a ring what counts is the
/// largest chunk, in a scheme of fixed shares how much of its own a rank has.
double cost_of(const SharesJob& job, const Solution& solution, std::size_t r, double bytes) {
  const RankModel& rank = job.model().ranks()[r];
  if (solution.ring) {
    return bytes;
  }
  if (solution.fixed_shares) {
    return bytes / solution.share_bytes[r];
  }
  const double others = static_cast<double>(job.workers.size()) - (rank.worker ? 1 : 0);
  return ((rank.worker ? job.bytes() - bytes : 0) + others * bytes) / rank.port();
}

/// `load`: of ranks that own `loads` bytes.
std::vector<PlanRank> ranks_of(const SharesJob& job, const Solution& solution,
                               std::span<const double> loads, const Load& load,
                               std::uint64_t lanes) {
  std::vector<PlanRank> ranks;
  for (std::size_t r = 0; r < job.model().ranks().size(); ++r) {
    const RankModel& rank = job.model().ranks()[r];
    PlanRank& out = ranks.emplace_back();
    out.machine = rank.machine;
    out.rack = rank.rack;
    out.worker = rank.worker;
    out.server = rank.server;
    out.lanes = static_cast<int>(lanes);
    out.share_bytes = solution.share_bytes[r];
    out.assigned_bytes = static_cast<std::uint64_t>(loads[r]);
    out.port_bytes_per_second = rank.port_bytes_per_s;
    out.egress_bytes = static_cast<std::uint64_t>(load.egress_bytes[r]);
    out.ingress_bytes = static_cast<std::uint64_t>(load.ingress_bytes[r]);
  }
  return ranks;
}

/// Of all ranks that sum: streaming where it gains at one of them.
Stores stores_of(const SharesJob& job, const Load& load, std::uint64_t part_bytes) {
  Stores stores = Stores::cached;
  for (std::size_t r = 0; r < job.model().ranks().size(); ++r) {
    if (load.summed_bytes[r] > 0) {
      const StoresChoice choice = job.model().stores_of(job.model().ranks()[r], load.operands,
                                                        static_cast<double>(part_bytes));
      stores = std::max(stores, choice.stores);
    }
  }
  return stores;
}

/// Equation 22.
void add_fixed_point(Plan& plan, const SharesJob& job) {
  if (!job.options.fixed_point) {
    return;
  }
  const auto& [bits, bound] = *job.options.fixed_point;
  const std::int32_t limit = fixed_point_limit(bits, job.workers.size());
  const int exponent = fixed_point_exponent(limit, bound);
  plan.fixed_point = FixedPointPlan{bits, bound, exponent};
  plan.quantities.push_back({"fixed_point_exponent",
                             static_cast<double>(exponent),
                             "equation 22: the greatest with which no sum leaves its bits",
                             {{"n", static_cast<double>(job.workers.size())},
                              {"bits", static_cast<double>(bits)},
                              {"gradient_bound", bound}}});
  plan.quantities.push_back({"fixed_point_error",
                             fixed_point_error(exponent, job.workers.size()),
                             "equation 22: n / (2 2^e), how far a sum may be off",
                             {{"n", static_cast<double>(job.workers.size())}}});
}

/// What follows from a choice once its parts have their servers.
struct Assigned {
  const SharesJob& job;
  const Solution& solution;
  std::vector<double> loads; ///< by rank: bytes that it owns
  PartShape shape;
  [[nodiscard]] std::optional<double> played(const Plan& plan) const {
    constexpr PlayEffort k_effort{150'000, 40'000, true};
    const double writes_per_part =
        2 * static_cast<double>(job.workers.size()) *
        (plan.asynchronous ? static_cast<double>(plan.asynchronous->steps) : 1);
    const auto parts = static_cast<double>(plan.parts.size());
    // A beginning says how the rest goes on only if it is much longer than what is under way at
    // once. A window is of all parts, in a ring of those of one owner.
    const double under_way = (solution.ring ? static_cast<double>(job.workers.size()) : 1) *
                             static_cast<double>(plan.window_parts) * plan.ranks.front().lanes;
    if (job.model().one_machine() || (parts * writes_per_part > k_effort.most_writes &&
                                      4 * under_way * writes_per_part > k_effort.most_writes)) {
      return std::nullopt;
    }
    const auto part_bytes = static_cast<double>(plan.part_bytes);
    Between between = job.ways.between(part_bytes);
    if (job.pairs() != nullptr) { // which have curves of their own
      between.network = in_pieces(std::move(between.network),
                                  2 * static_cast<double>(job.workers.size()) * job.bytes(),
                                  k_effort.most_pieces);
    }
    const double steady_s = busiest_station(lower(together(plan)), between).seconds *
                            (plan.asynchronous ? job.steps() : 1);
    return played_seconds(plan, between, job.ways.op_cost(part_bytes), parts * writes_per_part,
                          steady_s, k_effort);
  }
  [[nodiscard]] UpdateChoice update(const Prediction& sums,
                                    const PlayedWithStep& played_with_step = {}) const {
    return choose_update(job.model(), solution, loads, shape, sums, *job.options.optimizer,
                         job.options.update_at, played_with_step);
  }
};

void add_step(Plan& plan, const Assigned& assigned) {
  const UpdateChoice step = assigned.update(plan.prediction, [&](UpdatePlace place) {
    Plan stepping = plan;
    stepping.update = UpdatePlan{*assigned.job.options.optimizer, place};
    return assigned.played(stepping);
  });
  plan.prediction = step.prediction;
  plan.update = step.update;
  plan.quantities = step.quantities; // describe() puts the others before them
}

/// Equation 21: as many exchanges as steps, and no barrier but each worker's own.
void add_async_steps(Plan& plan, const Assigned& assigned) {
  const SharesJob& job = assigned.job;
  UpdateChoice step = assigned.update(plan.prediction);
  plan.prediction = step.prediction;
  plan.update = step.update;
  plan.asynchronous = AsyncPlan{*job.options.async_steps};
  scale(plan.prediction, job.steps());
  for (Quantity& q : step.quantities) {
    q.value *= q.name.ends_with("_seconds") ? job.steps() : 1;
  }
  for (PlanRank& r : plan.ranks) {
    r.egress_bytes *= *job.options.async_steps;
    r.ingress_bytes *= *job.options.async_steps;
  }
  if (job.passes) { // a worker's step begins with its passes, and they are nobody else's time
    const double computed = job.steps() * job.passes->total_seconds();
    for (double* const seconds :
         {&plan.prediction.lo_seconds, &plan.prediction.mid_seconds, &plan.prediction.hi_seconds}) {
      *seconds += computed;
    }
    plan.prediction.bound_seconds = std::max(plan.prediction.bound_seconds, computed);
    plan.prediction.terms.push_back({"passes", computed});
  }
  plan.quantities = step.quantities;
  plan.quantities.push_back({"asynchronous_steps",
                             job.steps(),
                             "equation 21: bound and prediction are of that many exchanges",
                             {}});
  if (const auto seconds = assigned.played(plan)) {
    double steady = 0;
    for (const Term& t : plan.prediction.terms) {
      steady += t.name == "fill" ? 0 : t.seconds;
    }
    replace_by_played(plan.prediction, std::max(*seconds, steady));
  }
}

/// The passes around the exchange, where there are some, and the play's time for all of it.
void add_play(Plan& plan, const Assigned& assigned) {
  const SharesJob& job = assigned.job;
  const std::optional<double> seconds = assigned.played(plan);
  if (job.passes) {
    const double traffic = plan.prediction.mid_seconds;
    std::optional<double> credit;
    if (!in_gradient_order(plan.parts)) {
      const PartShape& shape = assigned.shape;
      credit =
          traffic * std::min(1.0, shape.window_parts * plan.ranks.front().lanes / shape.part_count);
    }
    add_passes(plan.prediction, *job.passes, plan.parts, seconds, credit);
    if (job.contention) {
      add_contention(plan.prediction, *job.passes, traffic, *job.contention);
    } else {
      share_processors(plan.prediction, *job.passes, traffic, job.model());
    }
  } else if (seconds) {
    replace_by_played(plan.prediction, *seconds);
  }
}

} // namespace

Plan cut_and_assign(const SharesJob& job, const Choice& choice) {
  const Solution& solution = choice.solution;
  Plan plan;
  const auto part_bytes = static_cast<std::uint64_t>(choice.shape.part_bytes);
  plan.parts = cut(job.layout, job.inputs.workload, part_bytes, job.options.cutting,
                   job.options.part_bytes ? 1 : streams(solution.strategy, job.model()));
  plan.passes = job.passes;
  if (job.passes && job.options.order == Order::priority) {
    order_by_priority(plan.parts, *job.passes, job.bytes() / choice.prediction.mid_seconds);
  }
  assign_servers(plan.parts, solution.share_bytes, [&](std::size_t rank, double bytes) {
    return cost_of(job, solution, rank, bytes);
  });
  const std::vector<double> loads = loads_of(plan.parts, job.model().ranks().size());
  const Load load = job.load_of(solution, loads);
  const double exact = choice.exact_port_seconds;
  plan.assignment_gap = exact > 0 ? load.port_seconds / exact - 1 : 0;
  std::uint64_t lanes = 1;
  for (const RankModel& r : job.model().ranks()) {
    lanes = std::max<std::uint64_t>(lanes, static_cast<std::uint64_t>(r.lanes));
  }
  assign_lanes(plan.parts, job.model().ranks().size(), lanes);
  plan.part_bytes = plan.parts.size() == 0
                        ? part_bytes
                        : *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
  plan.window_parts = static_cast<std::uint64_t>(choice.shape.window_parts);
  plan.sums_in_place = choice.shape.in_place;
  plan.ranks = ranks_of(job, solution, loads, load, lanes);
  plan.stores = stores_of(job, load, plan.part_bytes);
  add_fixed_point(plan, job);
  plan.strategy = solution.strategy;
  if (!std::ranges::is_sorted(solution.ring_order)) {
    plan.ring_order.assign(solution.ring_order.begin(), solution.ring_order.end());
  }
  plan.groups = solution.groups;
  plan.gradient_bytes = job.layout.total_bytes;
  plan.runs = job.layout.runs;
  plan.wire = job.wire;
  return plan;
}

Plan predicted(const SharesJob& job, const Choice& choice, const Plan& assigned_plan,
               double window) {
  Plan plan = assigned_plan;
  plan.window_parts = static_cast<std::uint64_t>(window);
  Assigned assigned{job, choice.solution, loads_of(plan.parts, job.model().ranks().size()),
                    choice.shape};
  assigned.shape.window_parts = window;
  assigned.shape.part_bytes = static_cast<double>(plan.part_bytes);
  assigned.shape.part_count = static_cast<double>(plan.parts.size());
  const Load load = job.load_of(choice.solution, assigned.loads);
  plan.prediction = predict(job.model(), choice.solution, load, assigned.shape);
  const double exact = choice.exact_port_seconds, time = load.port_seconds;
  constexpr double k_rounding = 1e-9;
  const bool ports_bind = plan.prediction.bound_seconds <= exact * (1 + k_rounding);
  if (!job.model().one_machine() && ports_bind && time < exact) {
    // Whole parts can spare the slowest port a little.
    plan.prediction.bound_seconds = std::min(plan.prediction.bound_seconds, time);
  }
  if (job.pairs() != nullptr && raise_bound(plan.prediction, lower(together(plan)), *job.pairs())) {
    plan.prediction.relief = "more bandwidth there, or a strategy with fewer bytes on it";
    Term& transport = plan.prediction.terms.front();
    transport.seconds = std::max(transport.seconds, plan.prediction.bound_seconds);
  }
  lower_bound(plan.prediction, job.least());
  if (job.options.async_steps) {
    add_async_steps(plan, assigned);
    return plan;
  }
  add_play(plan, assigned);
  if (job.options.optimizer) {
    add_step(plan, assigned);
  }
  return plan;
}

} // namespace reckon
