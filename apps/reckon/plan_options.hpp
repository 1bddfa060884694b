// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/roles.hpp"
#include "plan_arguments.hpp"
#include "strategies/inside/planner.hpp"
#include "strategies/planner.hpp"
#include "strategies/proxies/planner.hpp"

#include <optional>

namespace reckon {

/// What the arguments ask of a planner. Each throws Error{usage} for values that an option has not,
/// and options that do not fit each other.
[[nodiscard]] PlanOptions plan_options_of(const PlanArguments& a);

/// Those of --inside. Throws Error{input} for roles that are not inside one machine.
[[nodiscard]] InsidePlanOptions inside_options_of(const PlanArguments& a,
                                                  const std::optional<Roles>& roles);

/// Those of the strategies over memory devices.
[[nodiscard]] ProxyOptions proxy_options_of(const PlanArguments& a);

} // namespace reckon
