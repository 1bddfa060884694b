// SPDX-License-Identifier: Apache-2.0
#include "strategies/least.hpp"

#include "core/units.hpp"
#include "equations/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace reckon {
namespace {

LeastTime least_of(const Star& star, const char* single, const char* several) {
  const StarSplit split = solve_star_split(star);
  switch (split.limit) {
  case StarLimit::nothing:
    return {0, fmt::format("nothing leaves {}", single)};
  case StarLimit::slowest_workers:
    return {split.time_s,
            fmt::format("{}, the slowest: the gradient has to leave it (equation 8)", single)};
  case StarLimit::all_ports:
  case StarLimit::servers:
    break;
  }
  return {split.time_s, fmt::format("{} together (equation 8)", several)};
}

} // namespace

Star star_of_racks(const CostModel& model, double model_bytes) {
  struct Rack {
    double ports = 0;
    bool works = false;
  };
  std::vector<Rack> racks(model.racks().size());
  for (std::size_t r = 0; r < model.ranks().size(); ++r) {
    Rack& rack = racks[model.rack_of()[r]];
    rack.ports += model.ranks()[r].port_bytes_per_s;
    rack.works = rack.works || model.ranks()[r].worker;
  }
  Star star;
  star.model_bytes = model_bytes;
  for (std::size_t number = 0; number < racks.size(); ++number) {
    const double rate =
        std::min(racks[number].ports, model.uplink_bytes_per_s(model.racks()[number]));
    (racks[number].works ? star.worker_bytes_per_s : star.server_bytes_per_s).push_back(rate);
  }
  return star;
}

LeastTime least_through_memory(const CostModel& model, double traffic_bytes) {
  const CostModel::BestRate best = model.best_memory_rate(traffic_bytes / 2);
  return {traffic_bytes / best.bytes_per_s,
          fmt::format("the machine's {}: {} read and written at the best rate ever measured, {} "
                      "({})",
                      best.of, to_text(Bytes(static_cast<std::uint64_t>(traffic_bytes))),
                      to_text(Bandwidth::bytes_per_s(best.bytes_per_s)), best.test)};
}

LeastTime least_time(const CostModel& model, double model_bytes) {
  if (model.one_machine()) {
    const auto workers = static_cast<double>(model.workers().size());
    return workers > 1 ? least_through_memory(model, 2 * workers * model_bytes) : LeastTime();
  }
  LeastTime least = least_of(model.star(model_bytes), "a worker's port", "all ports");
  if (model.racks().size() > 1) {
    LeastTime racks = least_of(star_of_racks(model, model_bytes), "a rack's uplink", "all uplinks");
    least = racks.seconds > least.seconds ? std::move(racks) : std::move(least);
  }
  return least;
}

void lower_bound(Prediction& prediction, const LeastTime& least) {
  constexpr double k_rounding = 1e-9; // what is the same keeps its own words
  if (least.seconds < prediction.bound_seconds * (1 - k_rounding)) {
    if (prediction.bound_seconds <= prediction.mid_seconds) { // else plans of it were seen faster
      prediction.busiest_seconds = prediction.bound_seconds;
      prediction.busiest_by = prediction.bound_by;
    }
    prediction.bound_by = least.by;
    prediction.bound_seconds = least.seconds;
  }
  const double bound = prediction.bound_seconds;
  if (prediction.mid_seconds < bound * (1 - k_rounding)) {
    prediction.terms.push_back({std::string(k_contradiction), bound - prediction.mid_seconds});
    prediction.mid_seconds = bound;
  }
  prediction.lo_seconds = std::clamp(prediction.lo_seconds, std::min(bound, prediction.mid_seconds),
                                     prediction.mid_seconds);
  prediction.hi_seconds = std::max(prediction.hi_seconds, prediction.mid_seconds);
}

} // namespace reckon
