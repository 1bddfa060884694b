// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/prediction.hpp"

#include "strategies/lower.hpp"
#include "strategies/parts.hpp"
#include "strategies/prediction.hpp"
#include "strategies/shares/cutting.hpp"
#include "strategies/update.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace reckon {
namespace {

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
    add_passes(plan.prediction, *job.passes, seconds, credit);
    if (job.contention) {
      add_contention(plan.prediction, *job.passes, traffic, *job.contention);
    }
  } else if (seconds) {
    replace_by_played(plan.prediction, *seconds);
  }
}

} // namespace

Plan predicted(const SharesJob& job, const Choice& choice, const Plan& assigned_plan,
               double window) {
  Plan plan = assigned_plan;
  plan.window_parts = static_cast<std::uint64_t>(window);
  Assigned assigned{job, choice.solution, loads_of(plan.parts, job.model().ranks().size()),
                    choice.shape};
  assigned.shape.window_parts = window;
  assigned.shape.part_bytes = static_cast<double>(plan.part_bytes);
  assigned.shape.part_count = static_cast<double>(plan.parts.size());
  plan.prediction = predict(job.model(), choice.solution, assigned.loads, assigned.shape);
  const double exact = port_seconds(job, choice.solution, choice.solution.share_bytes);
  const double time = port_seconds(job, choice.solution, assigned.loads);
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
