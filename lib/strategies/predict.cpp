// SPDX-License-Identifier: Apache-2.0
#include "strategies/predict.hpp"

#include "core/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace reckon {
namespace {

double sum(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}

constexpr std::array<Estimate, 3> k_estimates{Estimate::lo, Estimate::mid, Estimate::hi};

void set(Prediction& p, Estimate e, double seconds) {
  (e == Estimate::lo ? p.lo_seconds : e == Estimate::mid ? p.mid_seconds : p.hi_seconds) = seconds;
}

double active_ranks(const Load& load) {
  return static_cast<double>(std::count_if(load.egress_bytes.begin(), load.egress_bytes.end(),
                                           [](double b) { return b > 0; }));
}

Prediction predict_one_machine(const CostModel& model, const Load& load, const PartShape& shape) {
  Prediction p;
  const double moved = sum(load.egress_bytes);
  const double summed = sum(load.summed_bytes);
  const double ranks = active_ranks(load);
  const int lanes = model.ranks().front().lanes;
  const double talkers = ranks * lanes;
  const int threads =
      std::max(1, static_cast<int>(std::min(talkers, static_cast<double>(model.cores()))));
  p.bound_seconds = moved / model.best_shared_rate();
  p.bound_by = fmt::format(
      "the machine's memory and cores: {} between ranks at the best rate ever measured, {}",
      to_text(Bytes(static_cast<std::uint64_t>(moved))),
      to_text(Bandwidth::bytes_per_s(model.best_shared_rate())));
  for (const Estimate e : k_estimates) {
    using Target = CostModel::Target;
    const auto rate = [&](Target target) {
      return model.shared_rate(talkers, shape.part_bytes, target).slow_to_fast(e);
    };
    const double sum_rate =
        model.reduce_rate(shape.dtype, threads, load.operands, shape.part_bytes).slow_to_fast(e) *
        threads;
    const double transport =
        load.slot_bytes / rate(Target::slots) + (moved - load.slot_bytes) / rate(Target::gradients);
    const double reduction = summed / sum_rate;
    // Before the first sum and after the last, one part goes through write, sum, write by itself.
    const double fill =
        shape.part_bytes * static_cast<double>(load.operands) / rate(Target::gradients) +
        2 * model.latency_s();
    set(p, e, transport + reduction + fill);
    if (e == Estimate::mid) {
      p.terms = {{"transport", transport}, {"reduction", reduction}, {"fill", fill}};
    }
  }
  const double share = p.terms[0].seconds / p.mid_seconds;
  p.relief = fmt::format("moving bytes is {:.0f} % of the time, adding them up {:.0f} %; fewer "
                         "bytes between ranks (more "
                         "of them on the machine that sums) or faster memory",
                         100 * share, 100 * p.terms[1].seconds / p.mid_seconds);
  return p;
}

Prediction predict_ports(const CostModel& model, const Solution& solution, const Load& load,
                         const PartShape& shape) {
  Prediction p;
  p.bound_seconds = solution.star_seconds;
  p.bound_by = solution.bound_by;
  p.relief = solution.relief;
  const double efficiency = model.port_efficiency(shape.part_bytes);
  const auto services = static_cast<double>(std::count_if(
      load.summed_bytes.begin(), load.summed_bytes.end(), [](double b) { return b > 0; }));
  for (const Estimate e : k_estimates) {
    double transport = 0, reduction_beyond = 0, fill = 0;
    double longest = 0;
    for (std::size_t r = 0; r < load.egress_bytes.size(); ++r) {
      if (load.egress_bytes[r] <= 0) {
        continue;
      }
      const RankModel& rank = model.ranks()[r];
      const double rate = rank.port_bytes_per_s * efficiency;
      const double port = std::max(load.egress_bytes[r], load.ingress_bytes[r]) / rate;
      const double sum_rate =
          model.reduce_rate(shape.dtype, rank.lanes, load.operands, shape.part_bytes)
              .slow_to_fast(e) *
          rank.lanes;
      const double summing = load.summed_bytes[r] / sum_rate;
      if (std::max(port, summing) > longest) {
        longest = std::max(port, summing);
        transport = port;
        reduction_beyond = std::max(0.0, summing - port);
      }
      // Until the first sums are there, a server takes one part from each worker, a worker gives
      // one to each service.
      const double at_once = solution.ring ? 1
                             : rank.worker ? services
                                           : static_cast<double>(load.operands);
      const double one_sum =
          shape.part_bytes * static_cast<double>(load.operands - 1) / sum_rate * rank.lanes;
      fill = std::max(fill, at_once * shape.part_bytes / rate + one_sum);
    }
    if (longest == 0) {
      set(p, e, 0);
      p.terms = {{"transport", 0}, {"reduction", 0}, {"fill", 0}};
      continue;
    }
    fill +=
        2 * model.latency_s() * (solution.ring ? static_cast<double>(load.egress_bytes.size()) : 1);
    set(p, e, transport + reduction_beyond + fill);
    if (e == Estimate::mid) {
      p.terms = {{"transport", transport}, {"reduction", reduction_beyond}, {"fill", fill}};
    }
  }
  return p;
}

} // namespace

Prediction predict(const CostModel& model, const Solution& solution, std::span<const double> loads,
                   const PartShape& shape) {
  const Load load = load_of(solution, model, loads);
  if (sum(load.egress_bytes) == 0) {
    Prediction p;
    p.bound_by = "nothing has to move: one worker's gradient is its own sum";
    p.terms = {{"transport", 0}, {"reduction", 0}, {"fill", 0}};
    return p;
  }
  return model.one_machine() ? predict_one_machine(model, load, shape)
                             : predict_ports(model, solution, load, shape);
}

} // namespace reckon
