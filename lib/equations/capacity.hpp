// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

/// The number of workers that a parameter server supports: PHub (SysML'18), section 2. Plain
/// doubles: bytes, seconds, bytes per second. Invalid arguments throw Error{usage}.
namespace reckon {

/// A server with several network interfaces. All greater than 0 and finite.
struct ServerBox {
  std::uint64_t interfaces = 1;
  double interface_bytes_per_s = 0;         ///< of each interface, in each direction
  std::optional<double> memory_bytes_per_s; ///< between PCIe and memory, both directions together
  std::optional<double> sum_bytes_per_s;    ///< received gradients, by all cores
  std::optional<double> step_bytes_per_s; ///< stepped parameters, by all cores, which sum otherwise
};

/// A worker's demand: it pushes and pulls `gradient_bytes` in every iteration.
struct WorkerDemand {
  double gradient_bytes = 0;
  double iteration_s = 0;
};

enum class BoxLimit { interfaces, memory, sums };

/// Equation 47. Whole workers; a limit is absent without the box's value.
struct BoxCapacity {
  std::uint64_t workers = 0; ///< the least of the limits
  BoxLimit limited_by = BoxLimit::interfaces;
  std::uint64_t interface_limit = 0;
  std::optional<std::uint64_t> memory_limit, sum_limit;
};
[[nodiscard]] BoxCapacity box_capacity(const ServerBox& box, const WorkerDemand& demand);

/// Equation 47 for boxes that each hold a part of the parameters: the fewest that do not lengthen
/// an iteration of `workers` (at least 1), which is as long as their computation, or as their own
/// link (`worker_bytes_per_s` in each direction) where that takes longer. `box` is one of them.
/// Error{usage} beyond 10^9 boxes.
[[nodiscard]] std::uint64_t boxes_needed(const ServerBox& box, const WorkerDemand& demand,
                                         std::uint64_t workers, double worker_bytes_per_s);

/// Equation 48: an iteration of `workers` on `boxes`: the longest of the worker's compute, its own
/// link (`worker_bytes_per_s` in each direction) and what equation 47 counts at a box.
[[nodiscard]] double iteration_with_boxes_s(const ServerBox& box, const WorkerDemand& demand,
                                            std::uint64_t boxes, std::uint64_t workers,
                                            double worker_bytes_per_s);

/// Costs for the same time, in one currency: not negative, a worker more than 0.
struct BoxPrices {
  double worker = 0, box = 0;
  std::optional<double> server; ///< a machine with one interface of a worker's bandwidth
};

/// One placement of the servers of these workers.
struct ServerPlacement {
  const char* name;
  std::uint64_t servers = 0; ///< beyond the workers
  double iteration_s = 0;
  double cost = 0;             ///< of all machines; 0 without prices
  double workers_per_cost = 0; ///< worker iterations a second for each unit of cost
};

/// Equation 48 for as many boxes as boxes_needed(), for one if that is more, for a shard on each
/// worker, and for a server for each worker: the last without prices, or if they have one.
[[nodiscard]] std::vector<ServerPlacement>
server_placements(const ServerBox& box, const WorkerDemand& demand, std::uint64_t workers,
                  double worker_bytes_per_s, const std::optional<BoxPrices>& prices);

} // namespace reckon
