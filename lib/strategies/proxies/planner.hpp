// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/planner.hpp"

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// ProxyOptions::proxy_bytes for all tensors of any size.
inline constexpr double k_all_proxy_bytes = std::numeric_limits<double>::max();

/// The options of a plan over memory devices (COARSE) beside PlanOptions.
struct ProxyOptions {
  /// Ranks that are places inside machines (ranks_of(), places_of()). Empty: machines, or ranks
  /// that share one, as in the roles.
  std::vector<PlanRank> ranks{};
  bool gpu_direct = true; ///< OpenMachine::gpu_direct of their machines
  /// m of the dual synchronization: gradient bytes, in gradient order, that go through the proxies;
  /// the workers sum the rest in a ring. At most the workload's, or k_all_proxy_bytes. Absent: by
  /// the predicted time, but all with one_queue, which is about the proxies.
  std::optional<double> proxy_bytes;
  /// How far below the full bandwidth a shard may stay: decides S'.
  double tolerance = 0.02;
  /// Shards of S' as in the paper. Otherwise S', or a power of four shorter where that is predicted
  /// to be faster: several shards under way at once hide the latency of a single one, while long
  /// ones fill the pipeline slowly.
  bool paper_shards = false;
  /// 1: all rings of the proxies run one way; 2: neighbouring groups run opposite ways. Absent: by
  /// the predicted time.
  std::optional<int> ring_directions;
  /// Proxies that work first come, first served (with_one_queue()): the plan may never end.
  bool one_queue = false;
  /// Include the strategies of make_plan() among the candidates; that takes as long again.
  bool all_candidates = true;
};

/// "coarse", "dense".
[[nodiscard]] bool is_proxy_strategy(std::string_view name);

/// Plans with memory devices, ranks that serve and have no gradient (COARSE): every worker a client
/// with its routing table, tensors in equal shards, proxies that sum what their clients push and
/// then all-reduce in rings among themselves, each ring a tree of the plan; the last tensors in
/// gradient order by a ring of the workers (dual synchronization). Strategy "dense": one memory
/// device alone. The candidates have both beside the strategies of make_plan(). The parts are
/// tensor by tensor, in gradient order or by priority. Roles that name endpoints are places, too.
/// Throws as make_plan() and places_of().
[[nodiscard]] Plan plan_proxies(const PlanInputs& inputs, const PlanOptions& options,
                                const ProxyOptions& proxies);

/// The predicted time of an iteration of `plan` with these inputs, as plan_proxies() predicts its
/// own plans. The plan may have been made from another profile of the same machines.
[[nodiscard]] Prediction predict_proxies(const PlanInputs& inputs, const PlanOptions& options,
                                         const Plan& plan);

} // namespace reckon
