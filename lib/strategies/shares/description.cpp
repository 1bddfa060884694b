// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/description.hpp"

#include "core/units.hpp"
#include "documents/cells.hpp"
#include "documents/quantity_names.hpp"
#include "strategies/lane_places.hpp"
#include "strategies/least.hpp"
#include "strategies/one_machine.hpp"
#include "strategies/provenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {
namespace {

void add_lane_places(Plan& plan, const SharesJob& job) {
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    plan.ranks[r].lane_places =
        lane_places(job.inputs.profile.topology, job.model().ranks()[r].ports,
                    static_cast<std::size_t>(plan.ranks[r].lanes));
  }
}

void add_options(Plan& plan, const SharesJob& job) {
  const PlanOptions& options = job.options;
  plan.options["workers"] = std::to_string(job.workers.size());
  plan.options["servers"] = std::to_string(job.model().servers().size());
  plan.options["lanes"] =
      job.lanes_given ? std::to_string(job.model().ranks().front().lanes) : "auto";
  plan.options["cutting"] = options.cutting == Cutting::fused ? "fused" : "tensors";
  if (options.forward_seconds || options.backward_seconds) {
    add_pass_times(plan, options.forward_seconds.value_or(0), options.backward_seconds.value_or(0));
  }
  if (job.contention) {
    plan.options["contention"] =
        fmt::format("{}, {} cores", options.contention->operation,
                    options.contention->dedicated ? "dedicated" : "shared");
  }
  if (job.passes && !options.async_steps) {
    add_order(plan, options.order);
  }
  if (options.sums_in_place) {
    plan.options["sums"] = *options.sums_in_place ? "in_place" : "sent";
  }
  if (options.ring_order == RingOrdering::given) {
    plan.options["ring_order"] = "given";
  }
  if (options.async_steps) {
    plan.options["async_steps"] = std::to_string(*options.async_steps);
  }
  if (options.fixed_point) {
    plan.options["reduction"] = fmt::format("fixed:{}", options.fixed_point->bits);
    plan.options["gradient_bound"] = fmt::format("{}", options.fixed_point->gradient_bound);
  }
}

/// Puts what the passes leave exposed before the plan's quantities, and what contention adds after
/// them.
void add_passes_quantities(Plan& plan, const SharesJob& job) {
  if (job.contention) {
    plan.quantities.push_back({"contention_seconds",
                               contention_seconds(plan.prediction),
                               "equation 55",
                               {{"f_compute", job.contention->compute},
                                {"f_communication", job.contention->communication}}});
  }
  if (job.passes && !job.options.async_steps) {
    const auto sum = [](const std::vector<double>& seconds) {
      return std::accumulate(seconds.begin(), seconds.end(), 0.0);
    };
    Quantity exposed = exposed_quantity(plan, job.options.order, sum(job.passes->forward_seconds),
                                        sum(job.passes->backward_seconds));
    exposed.inputs["credit_bytes"] = static_cast<double>(plan.part_bytes * plan.window_parts);
    plan.quantities.insert(plan.quantities.begin(), std::move(exposed));
  }
}

/// Those that the scheme's equations gave.
std::vector<Quantity> solved_quantities(const Plan& plan, const SharesJob& job,
                                        const Solution& solution) {
  std::vector<Quantity> quantities = solution.quantities;
  if (!job.model().one_machine()) {
    return quantities;
  }
  // There are no ports: the shares hold (all ports count as equal), the equations' times do not.
  std::erase_if(quantities, [](const Quantity& q) { return q.name.ends_with("_seconds"); });
  for (Quantity& q : quantities) {
    q.inputs.erase("B");
    q.inputs.erase("B_server");
  }
  if (plan.sums_in_place) {
    const auto workers = static_cast<double>(job.workers.size());
    quantities.push_back({"moved_bytes",
                          2 * workers * static_cast<double>(plan.gradient_bytes),
                          "each worker's gradient, read and written once where it lies",
                          {{"workers", workers}}});
    return quantities;
  }
  double moved = 0;
  for (const PlanRank& r : plan.ranks) {
    moved += static_cast<double>(r.egress_bytes);
  }
  quantities.push_back({"moved_bytes",
                        moved,
                        "equation 5, summed over all ranks: what passes the machine's memory",
                        {{"ranks", static_cast<double>(plan.ranks.size())}}});
  return quantities;
}

/// Why sums are written as they are; nothing where that is not known.
std::optional<Quantity> stores_quantity(const Plan& plan, const SharesJob& job,
                                        const Solution& solution) {
  const Load load = job.load_of(solution, solution.share_bytes);
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const StoresChoice choice = job.model().stores_of(job.model().ranks()[r], load.operands,
                                                      static_cast<double>(plan.part_bytes));
    if (load.summed_bytes[r] == 0 || !choice.streaming) {
      continue;
    }
    return Quantity{"streaming_over_cached_stores",
                    *choice.streaming,
                    fmt::format("measured of sums that are sent at once: {} stores are taken",
                                name_of(plan.stores)),
                    {{"operands", static_cast<double>(load.operands)},
                     {"part_bytes", static_cast<double>(plan.part_bytes)},
                     {"threads", job.model().ranks()[r].lanes}}};
  }
  return std::nullopt;
}

void add_quantities(Plan& plan, const SharesJob& job, const Choice& choice) {
  const Solution& solution = choice.solution;
  add_passes_quantities(plan, job);
  std::vector<Quantity> quantities = solved_quantities(plan, job, solution);
  quantities.push_back({"part_bytes",
                        static_cast<double>(plan.part_bytes),
                        job.options.part_bytes ? "as given"
                        : plan.sums_in_place
                            ? "cut evenly, at most 1 MiB, as sums in place were measured"
                            : fmt::format("cut evenly, at most the largest power of two whose "
                                          "predicted time is within {:g} % of the least",
                                          100 * tolerance(job)),
                        {{"parts", static_cast<double>(plan.parts.size())}}});
  if (auto stores = plan.sums_in_place ? std::nullopt : stores_quantity(plan, job, solution)) {
    quantities.push_back(std::move(*stores));
  }
  if (choice.other_sums_seconds) {
    quantities.push_back(
        {std::string(plan.sums_in_place ? k_sums_sent_seconds : k_sums_in_place_seconds),
         *choice.other_sums_seconds,
         plan.sums_in_place ? "the same parts, sent to the ranks that sum them"
                            : "the same parts, summed in the memory of the ranks that have them",
         {}});
  }
  std::vector<std::string> sources = job.model().sources();
  if (plan.sums_in_place) { // nothing is sent
    std::erase_if(sources,
                  [](const std::string& source) { return source.starts_with(k_fabric_aggregate); });
  }
  add_sources(quantities, sources);
  plan.assumed = job.model().assumed();
  const Prediction& p = plan.prediction;
  if (std::ranges::find(p.terms, k_contradiction, &Term::name) != p.terms.end()) {
    plan.assumed.push_back(fmt::format("the profile contradicts itself: by its {} cells the "
                                       "exchange is faster than its bound, {}; "
                                       "the bound counts. Probe again",
                                       plan.sums_in_place ? k_sum_in_place : k_fabric_aggregate,
                                       p.bound_by));
  }
  if (job.pairs() != nullptr) {
    add_sources(quantities, job.pairs()->sources);
  }
  plan.quantities.insert(plan.quantities.begin(), quantities.begin(), quantities.end());
}

} // namespace

void add_margin(Plan& plan, bool asked_for) {
  compare_with_candidates(plan);
  if (plan.runner_up.empty() || plan.prediction.mid_seconds <= 0) {
    return;
  }
  std::vector<std::string> equal;
  for (const Candidate& c : plan.candidates) {
    if (c.prediction && c.strategy != plan.strategy &&
        std::abs(c.prediction->mid_seconds / plan.prediction.mid_seconds - 1) < k_alike) {
      equal.push_back(c.strategy);
    }
  }
  if (std::abs(plan.margin) < k_alike) {
    plan.margin_text = fmt::format("as good as {}: the predictions differ by less than 0.2 %",
                                   fmt::join(equal, ", "));
  } else if (plan.margin > 0) {
    plan.margin_text = fmt::format(
        "the choice holds until the rates behind this strategy fall by {:.1f} % against those "
        "behind {}",
        100 * plan.margin / (1 + plan.margin), plan.runner_up);
  } else if (!asked_for) {
    plan.margin_text = fmt::format("{} is predicted {} once the parts are assigned", plan.runner_up,
                                   faster_text(1 + plan.margin));
  }
}

void describe(Plan& plan, const SharesJob& job, const Choice& choice) {
  add_provenance(plan, job.inputs, job.options);
  plan.transport = job.model().transport();
  plan.rehearsal = rehearsal_like(plan, job.model());
  add_lane_places(plan, job);
  add_options(plan, job);
  add_quantities(plan, job, choice);
}

} // namespace reckon
