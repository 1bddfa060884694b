// SPDX-License-Identifier: Apache-2.0
#include "strategies/update.hpp"

#include "core/units.hpp"
#include "strategies/checkpoint_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

namespace reckon {
namespace {

constexpr std::size_t k_mid = 1;

/// What a place asks of the ranks, and what it adds to the iteration.
struct Cost {
  std::array<double, 3> added_s{}; ///< by estimate
  double bytes = 0; ///< stepped by the rank (on one machine: by all) that it costs most
  double rate = 0;  ///< bytes per second of that rank (of all)
};

std::vector<double> stepped_bytes(const CostModel& model, std::span<const double> loads,
                                  UpdatePlace place) {
  if (place == UpdatePlace::server) {
    return {loads.begin(), loads.end()};
  }
  const double all = std::accumulate(loads.begin(), loads.end(), 0.0);
  std::vector<double> stepped;
  for (const RankModel& r : model.ranks()) {
    stepped.push_back(r.worker ? all : 0);
  }
  return stepped;
}

Cost cost_on_one_machine(const CostModel& model, const std::vector<double>& stepped,
                         Optimizer optimizer) {
  const auto busy = std::count_if(stepped.begin(), stepped.end(), [](double b) { return b > 0; });
  const int lanes = model.ranks().front().lanes;
  const int threads = std::max(1, static_cast<int>(std::min<std::uint64_t>(
                                      static_cast<std::uint64_t>(busy * lanes), model.cores())));
  const Rate rate = model.step_rate(model.ranks().front().machine, optimizer, threads);
  Cost cost;
  cost.bytes = std::accumulate(stepped.begin(), stepped.end(), 0.0);
  cost.rate = rate.mid * threads;
  for (std::size_t e = 0; e < k_estimates.size(); ++e) {
    cost.added_s[e] = cost.bytes / (rate.slow_to_fast(k_estimates[e]) * threads);
  }
  return cost;
}

/// How long a rank's port is busy with an exchange, and its lanes with the sums.
struct Busy {
  double port_s = 0, summing_s = 0;
};
Busy busy_of(const CostModel& model, const Load& load, const PartShape& shape, std::size_t r,
             Estimate e) {
  const RankModel& rank = model.ranks()[r];
  return {load.port_bytes(r) / (rank.port() * model.port_efficiency(shape.part_bytes)),
          load.summed_bytes[r] /
              (model.sum_rate(rank, shape.dtype, load.operands, shape.part_bytes).slow_to_fast(e) *
               rank.lanes)};
}

Cost cost_with_ports(const CostModel& model, const Load& load, const std::vector<double>& stepped,
                     const PartShape& shape, Optimizer optimizer) {
  Cost cost;
  for (std::size_t e = 0; e < k_estimates.size(); ++e) {
    double before = 0, after = 0, last_part = 0, slowest = -1;
    for (std::size_t r = 0; r < stepped.size(); ++r) {
      const RankModel& rank = model.ranks()[r];
      const auto [port, summing] = busy_of(model, load, shape, r, k_estimates[e]);
      const Rate rate = model.step_rate(rank.machine, optimizer, rank.lanes);
      const double one = rate.slow_to_fast(k_estimates[e]);
      const double stepping = stepped[r] / (one * rank.lanes);
      before = std::max(before, std::max(port, summing));
      after = std::max(after, std::max(port, summing + stepping));
      if (stepped[r] > 0) {
        last_part = std::max(last_part, std::min(shape.part_bytes, stepped[r]) / one);
      }
      if (stepped[r] > 0 && stepping > slowest) {
        slowest = stepping;
        cost.bytes = stepped[r];
        cost.rate = rate.mid * rank.lanes;
      }
    }
    cost.added_s[e] = after - before + last_part;
  }
  return cost;
}

/// Bytes of parameters and states that each rank saves in a checkpoint: what it steps, or its share
/// where every worker steps everything.
std::vector<double> saved_bytes(const CostModel& model, std::span<const double> loads,
                                const UpdatePlan& update) {
  std::vector<double> saved = stepped_bytes(model, loads, update.place);
  const auto workers = static_cast<double>(model.workers().size());
  const double arrays = 1 + static_cast<double>(state_arrays(update.optimizer));
  for (double& bytes : saved) {
    bytes *= arrays / (update.place == UpdatePlace::worker ? workers : 1);
  }
  return saved;
}

/// What an iteration takes longer that copies what a checkpoint saves before it is stepped: all of
/// the copies where ranks share processors, else what they keep the lanes of the busiest rank
/// longer than its port. Nothing when the profile does not know how fast copies are.
std::optional<Quantity> checkpoint_cost(const CostModel& model, const Load& load,
                                        std::span<const double> loads, const PartShape& shape,
                                        const UpdatePlan& update) {
  const std::vector<double> saved = saved_bytes(model, loads, update);
  if (model.one_machine()) {
    return shared_checkpoint_cost(model, saved, shape.part_bytes);
  }
  Quantity q{"checkpoint_seconds", 0, "", {}};
  q.inputs["saved_bytes"] = std::accumulate(saved.begin(), saved.end(), 0.0);
  const std::vector<double> stepped = stepped_bytes(model, loads, update.place);
  double before = 0, after = 0;
  for (std::size_t r = 0; r < saved.size(); ++r) {
    const RankModel& rank = model.ranks()[r];
    const auto rate = model.copy_rate(shape.part_bytes, rank.lanes);
    if (!rate) {
      return std::nullopt;
    }
    const auto [port, summing] = busy_of(model, load, shape, r, Estimate::mid);
    const double lanes =
        summing +
        stepped[r] / (model.step_rate(rank.machine, update.optimizer, rank.lanes).mid * rank.lanes);
    before = std::max({before, port, lanes});
    after = std::max({after, port, lanes + saved[r] / *rate});
    q.inputs["copy_bytes_per_second"] = *rate;
  }
  q.value = after - before;
  q.equation = "equation 20b: what the copies keep the busiest rank's lanes beyond its port";
  return q;
}

/// Both places' times, and what the other one would cost. `known`: whether any step has a rate.
void add_places(UpdateChoice& choice, const Cost& server, const Cost& worker, bool known) {
  const bool at_server = choice.update.place == UpdatePlace::server;
  const auto quantity = [&](const char* name, const Cost& cost, const char* who) {
    Quantity q{name, cost.added_s[k_mid], fmt::format("equation 20, {}", who), {}};
    q.inputs["stepped_bytes"] = cost.bytes;
    if (std::isfinite(cost.rate)) {
      q.inputs["optimizer_bytes_per_second"] = cost.rate;
    }
    choice.quantities.push_back(q);
  };
  quantity("update_at_server_seconds", server,
           at_server ? "chosen: the rank that sums a part steps it"
                     : "runner-up: the rank that sums a part would step it");
  quantity("update_at_worker_seconds", worker,
           at_server ? "runner-up: every worker would step everything"
                     : "chosen: every worker steps everything");
  const double ours = choice.prediction.mid_seconds;
  const double added = (at_server ? server : worker).added_s[k_mid];
  const double theirs = ours - added + (at_server ? worker : server).added_s[k_mid];
  const double margin = ours > 0 ? theirs / ours - 1 : 0;
  choice.quantities.push_back(
      {"update_margin_ratio",
       margin,
       !known       ? "nothing in the profile speaks for either place"
       : margin < 0 ? "the other place is predicted faster; this one was asked for"
                    : "how much longer the iteration would be with the step at the other place",
       {}});
}

} // namespace

UpdateChoice choose_update(const CostModel& model, const Solution& solution,
                           std::span<const double> loads, const PartShape& shape,
                           const Prediction& sums, Optimizer optimizer,
                           std::optional<UpdatePlace> asked, const PlayedWithStep& played) {
  const Load load = load_of(solution, model, loads);
  const auto cost_of = [&](UpdatePlace place) {
    const std::vector<double> stepped = stepped_bytes(model, loads, place);
    Cost cost = model.one_machine() ? cost_on_one_machine(model, stepped, optimizer)
                                    : cost_with_ports(model, load, stepped, shape, optimizer);
    if (const auto seconds = played ? played(place) : std::nullopt) {
      const double added = std::max(0.0, *seconds - sums.mid_seconds);
      // Steps of unknown rate are free; what the play adds for them then has no range.
      const double alone = cost.added_s[k_mid];
      const auto scaled = [&](std::size_t e) {
        return alone > 0 ? cost.added_s[e] * (added / alone) : added;
      };
      cost.added_s = {scaled(0), added, scaled(2)};
    }
    return cost;
  };
  const Cost server = cost_of(UpdatePlace::server);
  const Cost worker = cost_of(UpdatePlace::worker);

  UpdateChoice choice;
  choice.update.optimizer = optimizer;
  choice.update.place = asked                                           ? *asked
                        : server.added_s[k_mid] < worker.added_s[k_mid] ? UpdatePlace::server
                                                                        : UpdatePlace::worker;
  const bool at_server = choice.update.place == UpdatePlace::server;
  const Cost& chosen = at_server ? server : worker;
  choice.prediction = sums;
  choice.prediction.lo_seconds += chosen.added_s[0];
  choice.prediction.mid_seconds += chosen.added_s[k_mid];
  choice.prediction.hi_seconds += chosen.added_s[2];
  choice.prediction.terms.push_back({"update", chosen.added_s[k_mid]});

  const bool known = std::isfinite(server.rate) || std::isfinite(worker.rate);
  add_places(choice, server, worker, known);
  if (const auto cost = checkpoint_cost(model, load, loads, shape, choice.update)) {
    choice.quantities.push_back(*cost);
  }
  if (known) {
    choice.quantities.push_back(
        {"profile", 0, fmt::format("optimizer_step: {}", name_of(optimizer)), {}});
  }
  return choice;
}

} // namespace reckon
