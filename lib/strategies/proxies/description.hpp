// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/job.hpp"
#include "strategies/proxies/planner.hpp"
#include "strategies/proxies/routes.hpp"
#include "strategies/proxies/search.hpp"

namespace reckon {

/// What the planner came to beside the plan itself.
struct ProxyFindings {
  const RoutingTables& routing;
  const DualSolutions& dual;
  double partition_bytes = 0; ///< S' of all clients, or as asked for
  double shard_bytes = 0;     ///< least length of a shard that was chosen
  bool lanes_given = false;
};

/// Writes into a plan what it was made from, what was asked for, and the quantities behind it.
void describe(Plan& plan, const PlanInputs& inputs, const PlanOptions& options,
              const ProxyOptions& proxies, const Job& job, const Ways& ways,
              const ProxyFindings& found);

} // namespace reckon
