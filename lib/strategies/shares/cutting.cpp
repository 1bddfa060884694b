// SPDX-License-Identifier: Apache-2.0
#include "strategies/shares/cutting.hpp"

#include "equations/fixed_point.hpp"
#include "strategies/parts.hpp"

#include <algorithm>
#include <numeric>
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

} // namespace

double port_seconds(const SharesJob& job, const Solution& solution, std::span<const double> loads) {
  return port_seconds(load_of(solution, job.model(), loads), job.model());
}

Plan cut_and_assign(const SharesJob& job, const Choice& choice, bool by_priority) {
  const Solution& solution = choice.solution;
  Plan plan;
  const auto part_bytes = static_cast<std::uint64_t>(choice.shape.part_bytes);
  plan.parts = cut(job.layout, job.inputs.workload, part_bytes, job.options.cutting,
                   job.options.part_bytes ? 1 : streams(solution.strategy, job.model()));
  plan.passes = job.passes;
  if (job.passes && by_priority) {
    order_by_priority(plan.parts, *job.passes, job.bytes() / choice.prediction.mid_seconds);
  }
  assign_servers(plan.parts, solution.share_bytes, [&](std::size_t rank, double bytes) {
    return cost_of(job, solution, rank, bytes);
  });
  const std::vector<double> loads = loads_of(plan.parts, job.model().ranks().size());
  const double exact = port_seconds(job, solution, solution.share_bytes);
  plan.assignment_gap = exact > 0 ? port_seconds(job, solution, loads) / exact - 1 : 0;
  std::uint64_t lanes = 1;
  for (const RankModel& r : job.model().ranks()) {
    lanes = std::max<std::uint64_t>(lanes, static_cast<std::uint64_t>(r.lanes));
  }
  assign_lanes(plan.parts, job.model().ranks().size(), lanes);
  plan.part_bytes = plan.parts.size() == 0
                        ? part_bytes
                        : *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
  plan.window_parts = static_cast<std::uint64_t>(choice.shape.window_parts);
  const Load load = load_of(solution, job.model(), loads);
  plan.ranks = ranks_of(job, solution, loads, load, lanes);
  plan.stores = stores_of(job, load, plan.part_bytes);
  add_fixed_point(plan, job);
  plan.strategy = solution.strategy;
  if (!std::ranges::is_sorted(solution.ring_order)) {
    plan.ring_order.assign(solution.ring_order.begin(), solution.ring_order.end());
  }
  plan.gradient_bytes = job.layout.total_bytes;
  plan.runs = job.layout.runs;
  return plan;
}

} // namespace reckon
