// SPDX-License-Identifier: Apache-2.0
#include "equations/capacity.hpp"

#include "core/error.hpp"
#include "equations/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

namespace reckon {

using equations::check_positive;

namespace {

void check(const ServerBox& box, const WorkerDemand& demand) {
  check_positive(demand.gradient_bytes, "the gradient's bytes");
  check_positive(demand.iteration_s, "an iteration's time");
  check_positive(static_cast<double>(box.interfaces), "the number of interfaces");
  check_positive(box.interface_bytes_per_s, "an interface's bandwidth");
  for (const auto& [rate, what] : {std::pair(box.memory_bytes_per_s, "the memory's bandwidth"),
                                   std::pair(box.sum_bytes_per_s, "the rate of sums"),
                                   std::pair(box.step_bytes_per_s, "the rate of steps")}) {
    if (rate) {
      check_positive(*rate, what);
    }
  }
}

/// Whole workers of a quotient that may be off by rounding.
std::uint64_t whole(double workers) {
  constexpr double k_rounding = 1e-9;
  constexpr double k_most = 1e15;
  return static_cast<std::uint64_t>(
      std::floor(std::clamp(workers * (1 + k_rounding), 0.0, k_most)));
}

double interfaces_bytes_per_s(const ServerBox& box) {
  return static_cast<double>(box.interfaces) * box.interface_bytes_per_s;
}

/// The cores' time for the step is not there for sums.
double left_for_sums_s(const ServerBox& box, double gradient_bytes, double iteration_s) {
  return iteration_s - (box.step_bytes_per_s ? gradient_bytes / *box.step_bytes_per_s : 0);
}

/// What one box takes for an iteration of so many workers; b boxes take 1/b of it.
double box_s(const ServerBox& box, double gradient_bytes, std::uint64_t workers) {
  const double all = gradient_bytes * static_cast<double>(workers);
  const double sums = box.sum_bytes_per_s ? all / *box.sum_bytes_per_s : 0;
  const double steps = box.step_bytes_per_s ? gradient_bytes / *box.step_bytes_per_s : 0;
  return std::max({all / interfaces_bytes_per_s(box),
                   box.memory_bytes_per_s ? 2 * all / *box.memory_bytes_per_s : 0, sums + steps});
}

/// An iteration of a worker that never waits for a box.
double worker_s(const WorkerDemand& demand, double worker_bytes_per_s) {
  check_positive(worker_bytes_per_s, "a worker's bandwidth");
  return std::max(demand.iteration_s, demand.gradient_bytes / worker_bytes_per_s);
}

} // namespace

BoxCapacity box_capacity(const ServerBox& box, const WorkerDemand& demand) {
  check(box, demand);
  const auto& [bytes, seconds] = demand;
  BoxCapacity out;
  out.interface_limit = whole(interfaces_bytes_per_s(box) * seconds / bytes);
  out.workers = out.interface_limit;
  const auto limit = [&](std::optional<std::uint64_t>& of, BoxLimit name, double workers) {
    of = whole(workers);
    if (*of < out.workers) {
      out.workers = *of;
      out.limited_by = name;
    }
  };
  if (box.memory_bytes_per_s) { // a push is written, a pull is read
    limit(out.memory_limit, BoxLimit::memory, *box.memory_bytes_per_s * seconds / (2 * bytes));
  }
  if (box.sum_bytes_per_s) {
    limit(out.sum_limit, BoxLimit::sums,
          *box.sum_bytes_per_s * left_for_sums_s(box, bytes, seconds) / bytes);
  } else if (box.step_bytes_per_s && left_for_sums_s(box, bytes, seconds) < 0) {
    limit(out.sum_limit, BoxLimit::sums, 0);
  }
  return out;
}

std::uint64_t boxes_needed(const ServerBox& box, const WorkerDemand& demand, std::uint64_t workers,
                           double worker_bytes_per_s) {
  check(box, demand);
  constexpr double k_rounding = 1e-9, k_most = 1e9;
  const double boxes =
      box_s(box, demand.gradient_bytes, workers) / worker_s(demand, worker_bytes_per_s);
  const double needed = std::max(1.0, std::ceil(boxes * (1 - k_rounding)));
  if (needed > k_most) {
    fail(ErrorKind::usage, fmt::format("{} workers would need {:.3g} boxes", workers, needed));
  }
  return static_cast<std::uint64_t>(needed);
}

double iteration_with_boxes_s(const ServerBox& box, const WorkerDemand& demand, std::uint64_t boxes,
                              std::uint64_t workers, double worker_bytes_per_s) {
  check(box, demand);
  check_positive(static_cast<double>(boxes), "the number of boxes");
  return std::max(worker_s(demand, worker_bytes_per_s),
                  box_s(box, demand.gradient_bytes, workers) / static_cast<double>(boxes));
}

std::vector<ServerPlacement> server_placements(const ServerBox& box, const WorkerDemand& demand,
                                               std::uint64_t workers, double worker_bytes_per_s,
                                               const std::optional<BoxPrices>& prices) {
  const auto n = static_cast<double>(workers);
  std::vector<ServerPlacement> out;
  const auto place = [&](const char* name, std::uint64_t servers, double seconds, double price) {
    ServerPlacement p{name, servers, seconds, 0, 0};
    if (prices) {
      p.cost = n * prices->worker + static_cast<double>(servers) * price;
      p.workers_per_cost = n / seconds / p.cost;
    }
    out.push_back(p);
  };
  const auto place_boxes = [&](const char* name, std::uint64_t boxes) {
    place(name, boxes, iteration_with_boxes_s(box, demand, boxes, workers, worker_bytes_per_s),
          prices ? prices->box : 0);
  };
  const std::uint64_t boxes = boxes_needed(box, demand, workers, worker_bytes_per_s);
  place_boxes("boxes", boxes);
  if (boxes > 1) {
    place_boxes("one box", 1);
  }
  // Each worker has a shard: (n-1)/n of the gradient goes out to the others' shards, and as much
  // to each of the others from its own; the same comes in.
  place("a shard on each worker", 0,
        std::max(demand.iteration_s, 2 * (n - 1) / n * demand.gradient_bytes / worker_bytes_per_s),
        0);
  if (!prices || prices->server) {
    place("a server for each worker", workers, worker_s(demand, worker_bytes_per_s),
          prices ? *prices->server : 0);
  }
  return out;
}

} // namespace reckon
