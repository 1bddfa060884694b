// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/proxies/planner.hpp"

#include <optional>
#include <string>

namespace reckon {

/// A change of plan must be predicted to save this fraction of an iteration: it costs new
/// connections, and predictions are off by as much.
inline constexpr double k_replan_margin = 0.02;

/// The request that a plan over memory devices was made from.
struct ProxyRequest {
  Roles roles;
  PlanOptions options;
  ProxyOptions proxies;
};

/// From the options in the plan; `roles` are those of its link. Throws Error{input} when the plan
/// has no routing tables, when its request cannot be repeated while it runs (one queue, made-up
/// ports), or when an option is not one that `reckon plan` writes.
[[nodiscard]] ProxyRequest proxy_request_of(const Plan& plan, const Profile& profile,
                                            const std::optional<Roles>& roles);

/// Whether the plans move the same bytes the same way: parts, trees, window, lanes, and the place
/// of the optimizer's step.
[[nodiscard]] bool same_traffic(const Plan& a, const Plan& b);

/// The effect of a changed profile on a running plan.
struct Replanned {
  Plan plan;          ///< the best one now
  Prediction running; ///< of the running plan, now
  bool change = false;
  std::string why; ///< in words
};

/// Plans anew with the plan's own request. A change must move the bytes another way and be
/// predicted to save more than `margin` of the running plan's time with these inputs. The
/// candidates are only those over memory devices. The same inputs give the same answer, bit for
/// bit.
[[nodiscard]] Replanned replan(const Plan& running, const PlanInputs& inputs,
                               const ProxyRequest& request, double margin = k_replan_margin);

} // namespace reckon
