// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "plan_arguments.hpp"

#include <functional>

namespace reckon {

/// `reckon plan --sweep`: plans for each value of one setting, with `make(name, value)`, and prints
/// a line for each plan, or with --json all of them. Returns the exit status. Throws Error{usage},
/// and what `make` throws where no value has a plan.
[[nodiscard]] int
plan_sweep(const PlanArguments& arguments,
           const std::function<Plan(const std::string&, const std::string&)>& make);

} // namespace reckon
