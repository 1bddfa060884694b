// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "documents/roles.hpp"
#include "documents/workload.hpp"
#include "strategies/contention.hpp"
#include "strategies/model.hpp"
#include "strategies/parts.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace reckon {

/// In which order parts are sent, and with it what the next forward pass waits for.
enum class Order {
  gradient, ///< as the backward pass makes them; the forward pass waits for all sums
  priority, ///< of those that are there first what the forward pass needs first: each layer of it
            ///< waits for its own sums only
};

/// The order in which the workers of a ring hand sums on.
enum class RingOrdering {
  best,  ///< best_ring_order()
  given, ///< as the ranks are numbered
};

/// Sums in whole numbers.
struct FixedPointRequest {
  int bits = 32;             ///< bits of a sum: 2 to 32
  double gradient_bound = 1; ///< magnitude that no gradient exceeds
};

struct PlanOptions {
  std::string strategy = "auto";           ///< or one of strategy_names(), k_rack_hierarchical
  std::string transport;                   ///< empty: the fastest in the profile
  std::optional<std::uint64_t> part_bytes; ///< absent: chosen by the predicted time
  std::optional<std::uint64_t> window_parts;
  Cutting cutting = Cutting::fused;
  /// The model's passes, instead of the workload's; without both only the traffic counts.
  std::optional<double> forward_seconds, backward_seconds;
  bool zero_compute = false; ///< only the traffic counts, whatever the workload says (PHub 4)
  /// How sums are made between ranks that share memory (Plan::sums_in_place); absent: by the
  /// predicted time.
  std::optional<bool> sums_in_place;
  Order order = Order::gradient;
  RingOrdering ring_order = RingOrdering::best;
  /// The passes' computation and its place; absent: passes and traffic do not slow each other.
  std::optional<ContentionRequest> contention;
  std::optional<Optimizer> optimizer;       ///< absent: the plan ends with the sums
  std::optional<UpdatePlace> update_at;     ///< absent: by the predicted time
  std::optional<std::uint64_t> async_steps; ///< training without waiting for others; needs SGD
  std::optional<FixedPointRequest> fixed_point;
  /// Gradients of fp32 travel as this half type: planners get a workload of it (as_sent()).
  std::optional<DType> wire{};
  CostModel::WhatIf what_if;
  std::string configuration{}; ///< for a torus of endpoints; empty: only the links count
  /// Is told what is being planned, and the finished fraction in [0, 1]; may be empty.
  std::function<void(std::string_view step, double part_done)> progress{};
};

/// Passes of one iteration.
struct PassSeconds {
  double forward = 0, backward = 0;
};
/// The given passes, else the workload's, else its layers'; absent where only the traffic counts.
[[nodiscard]] PassSeconds pass_seconds(const Workload& workload, const PlanOptions& options);

/// The documents that a plan is made from, with the links to write into it.
struct PlanInputs {
  const Profile& profile;
  const Workload& workload;
  const Roles& roles;
  DocumentLink profile_link, workload_link;
  std::optional<DocumentLink> roles_link;
};

/// Solves every strategy of shares, and trees over racks where the profile has racks and they can
/// be faster; chooses the one with the least predicted time (or the given one), cuts the gradient
/// into parts and gives each its server and lane. The same inputs give the same plan, bit for bit.
/// Where the profile knows pairs of machines, every strategy is cut, assigned and played over the
/// ways between them (knows_pairs()). Throws Error{input} when the given strategy does not apply.
[[nodiscard]] Plan make_plan(const PlanInputs& inputs, const PlanOptions& options);

/// Throws Error{usage} where `name` is neither "auto" nor a strategy of any planner.
void check_strategy(const std::string& name);

} // namespace reckon
