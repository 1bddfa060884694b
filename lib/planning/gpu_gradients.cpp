// SPDX-License-Identifier: Apache-2.0
#include "planning/gpu_gradients.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "planning/refusals.hpp"
#include "strategies/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace reckon {
namespace {

/// How fast one worker's gradient is copied, bytes per second.
struct CopyRates {
  double down = 0, up = 0;
  std::string by; ///< whose
  bool measured = false;
  std::uint64_t idle_gpus = 0; ///< in each such machine
};

/// The slowest of a machine's GPUs in one direction; absent where none was measured.
std::optional<double> slowest(const Profile& profile, const char* test, const std::string& machine,
                              bool from_gpu) {
  std::optional<double> rate;
  for (const Cell* const cell : profile.select({.test = test})) {
    const std::string& gpu = from_gpu ? cell->key.from : cell->key.to;
    if (gpu.starts_with(machine + "/") && cell->unit == "bytes_per_second" && cell->p50 > 0 &&
        (cell->key.state.empty() || cell->key.state == "pinned")) {
      rate = std::min(rate.value_or(cell->p50), cell->p50);
    }
  }
  return rate;
}

/// The slowest PCIe link of a machine's GPUs; absent where one is unknown, or there is none.
std::optional<double> slowest_link(const Topology& topology, const std::string& machine) {
  std::optional<double> slowest;
  for (const std::string& id : topology.ids_in(machine, ObjectKind::gpu)) {
    const TopologyObject& gpu = *topology.find(id);
    const std::optional<double> rate =
        gpu.pcie ? std::optional(gpu.pcie->bytes_per_second()) : gpu.pcie_bytes_per_second;
    if (!rate) {
      return std::nullopt;
    }
    slowest = std::min(slowest.value_or(*rate), *rate);
  }
  return slowest;
}

/// As a part of what copies of the longest size get, for copies of `bytes`.
double efficiency(const Profile& profile, const std::string& machine, bool from_gpu, double bytes) {
  std::vector<CurvePoint> points;
  std::optional<std::string> gpu; // the first one's
  for (const Cell* const cell : profile.select({.test = k_gpu_copy})) {
    const auto& [device, host] = from_gpu ? std::pair(cell->key.from, cell->key.to)
                                          : std::pair(cell->key.to, cell->key.from);
    const bool of_host = host.find("/numa") != std::string::npos;
    if (device.starts_with(machine + "/gpu") && of_host && gpu.value_or(device) == device &&
        cell->unit == "seconds" && cell->p50 > 0 && cell->key.state == "pinned" &&
        (points.empty() || points.back().bytes < static_cast<double>(cell->key.bytes))) {
      gpu = device;
      points.push_back({static_cast<double>(cell->key.bytes), cell->p50});
    }
  }
  if (points.empty() || bytes >= points.back().bytes) {
    return 1;
  }
  const Curve curve(points, Curve::Shape::non_decreasing);
  const auto rate = [&](double size) { return size / curve.seconds_at(size); };
  return rate(bytes) / rate(points.back().bytes);
}

CopyRates rates_of(const Profile& profile, const std::string& machine, double workers,
                   double part_bytes) {
  std::optional<double> down = slowest(profile, k_device_to_host_ce, machine, true);
  std::optional<double> up = slowest(profile, k_host_to_device_ce, machine, false);
  const bool measured = down && up;
  if (!measured) {
    down = up = slowest_link(profile.topology, machine);
  }
  if (!down) {
    fail(ErrorKind::input,
         fmt::format("--gradients gpu: profile '{}' {}", profile.name,
                     profile.topology.ids_in(machine, ObjectKind::gpu).empty()
                         ? fmt::format("knows no GPU of {}", machine)
                         : fmt::format("does not say how fast the GPUs of {} are copied from and "
                                       "to; `reckon probe` on the machine measures it, or give "
                                       "each in the topology its pcie",
                                       machine)));
  }
  const std::optional<double> both = slowest(profile, k_host_device_two_way_ce, machine, false);
  const auto gpus = static_cast<double>(
      std::max<std::size_t>(1, profile.topology.ids_in(machine, ObjectKind::gpu).size()));
  const double sharing = std::max(1.0, std::ceil(workers / gpus));
  const auto rate = [&](double alone, bool from_gpu) {
    const double beside = both ? std::min(alone, *both / 2) : alone;
    return beside * efficiency(profile, machine, from_gpu, part_bytes) / sharing;
  };
  const double idle = std::max(0.0, gpus - std::max(1.0, workers));
  return {rate(*down, true), rate(*up, false), machine, measured, static_cast<std::uint64_t>(idle)};
}

/// Of the worker whose copies are slowest.
CopyRates slowest_rates(const Plan& plan, const Profile& profile, double part_bytes) {
  CopyRates slowest{std::numeric_limits<double>::infinity(), 0, "", false, 0};
  std::set<std::string> seen;
  for (const PlanRank& rank : plan.ranks) {
    if (!rank.worker || !seen.insert(rank.machine).second) {
      continue;
    }
    const bool share_machine = rank.port_bytes_per_second <= 0 && !rank.machine_number;
    const auto workers = static_cast<double>(
        share_machine ? std::ranges::count_if(plan.ranks, &PlanRank::worker)
                      : std::ranges::count_if(plan.ranks, [&](const PlanRank& other) {
                          return other.worker && rank.machine_number &&
                                 other.machine == rank.machine &&
                                 other.machine_number == rank.machine_number;
                        }));
    const CopyRates rates = rates_of(profile, rank.machine, workers, part_bytes);
    slowest = rates.down < slowest.down ? rates : slowest;
  }
  return slowest;
}

} // namespace

void check_gpu_gradients(const PlanRequest& request) {
  const PlanOptions& asked = request.options;
  refuse_with(
      "--gradients gpu",
      {{"--async", asked.async_steps.has_value(), "the program makes the step, on its GPU"},
       {"--optimizer", asked.optimizer.has_value(), "the program makes the step, on its GPU"},
       {"--reduction", asked.fixed_point.has_value(), "no GPU turns gradients into whole numbers"},
       {"--order priority", asked.order == Order::priority,
        "a training program waits for all gradients"},
       {"--collective", request.collective != Collective::all_reduce,
        "a training program needs an all-reduce"},
       {"--inside", request.inside.has_value(), "ranks of such a plan may be GPUs themselves"},
       {"--shape", !request.shape.empty(), "an endpoint's copies are its own"}});
}

void add_gpu_gradients(Plan& plan, const Profile& profile) {
  if (std::ranges::any_of(plan.ranks, [](auto& rank) { return rank.endpoint_kind == "gpu"; })) {
    fail(ErrorKind::usage, "--gradients gpu: ranks of this plan are GPUs already; leave it out, or "
                           "plan with --places machine");
  }
  const double times = // fp32 on the GPU
      plan.wire ? static_cast<double>(size_of(DType::fp32) / size_of(*plan.wire)) : 1;
  const double bytes = times * static_cast<double>(plan.gradient_bytes);
  const double part = times * static_cast<double>(plan.part_bytes);
  const CopyRates rates = slowest_rates(plan, profile, part);
  const double slower = bytes / std::min(rates.down, rates.up);
  const double ends = part / rates.down + part / rates.up;
  Prediction& p = plan.prediction;
  const double computed = plan.passes ? plan.passes->total_seconds() : 0;
  const auto with = [&](double traffic) {
    return plan.passes ? computed + exposed_seconds(*plan.passes, plan.parts, traffic) : traffic;
  };
  const double traffic = traffic_seconds(plan);
  const double added = with(std::max(traffic, slower)) - with(traffic) + ends;
  const auto shift = [](Prediction& some, double seconds) {
    for (double* const time : {&some.lo_seconds, &some.mid_seconds, &some.hi_seconds}) {
      *time += seconds;
    }
    some.terms.push_back({k_copies, seconds});
  };
  for (Candidate& candidate : plan.candidates) {
    if (candidate.prediction) {
      Prediction& of = *candidate.prediction;
      shift(of, plan.passes ? added : std::max(0.0, slower - of.mid_seconds) + ends);
      plan.margin = candidate.strategy == plan.runner_up
                        ? of.mid_seconds / (p.mid_seconds + added) - 1
                        : plan.margin;
    }
  }
  shift(p, added);
  if (slower > traffic) {
    p.relief =
        fmt::format("faster copies between the GPUs and the memory of {}, or fewer workers a "
                    "GPU",
                    rates.by);
    plan.margin_text.clear();
  }
  for (Quantity& quantity : plan.quantities) {
    quantity.value += quantity.name == "exposed_seconds" ? added : 0;
  }
  plan.options["gradients"] = "gpu";
  if (rates.idle_gpus > 0) {
    plan.assumed.push_back(fmt::format("in each machine {} {} no worker: --places N puts N workers "
                                       "on each",
                                       rates.by, counted(rates.idle_gpus, "GPU has", "GPUs have")));
  }
  if (!rates.measured) {
    plan.assumed.push_back(fmt::format("the GPUs of {} are copied from and to at their PCIe links' "
                                       "rates: the profile has no {}",
                                       rates.by, k_device_to_host_ce));
  }
  plan.quantities.push_back(
      {"gpu_copy_seconds",
       slower,
       fmt::format("equation 18d: the copies of a gradient of {} in one direction, beside traffic; "
                   "the first part's and the last one's are beside nothing",
                   rates.by),
       {{"bytes", bytes},
        {"down_bytes_per_second", rates.down},
        {"up_bytes_per_second", rates.up}}});
}

} // namespace reckon
