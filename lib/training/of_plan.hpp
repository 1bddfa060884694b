// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/workload.hpp"
#include "launch/environment.hpp"
#include "training/staging.hpp"

#include <string>
#include <vector>

namespace reckon {

/// Throws Error{input} for a plan (of `file`) that does more or less than sum all gradients at all
/// workers, or that counts on more than a training program does.
void require_plain_sums(const Plan& plan, const std::string& file);

/// What the plan of `plan_file` was made from: `workload`, a file or a shipped name; empty: what
/// the plan names. Throws Error{input} where it is not found, or is another one.
[[nodiscard]] Workload workload_of(const Plan& plan, const std::string& plan_file,
                                   const std::string& workload);
/// Whose tensors are the plan's parts, in the order in which they lie.
[[nodiscard]] Workload parts_as_workload(const Plan& plan, const std::string& plan_file);

[[nodiscard]] std::vector<Staging::Place> places_of(const Workload& workload,
                                                    const GradientLayout& layout);
/// Of the plan's parts, in a worker's gradient.
[[nodiscard]] std::vector<Stretch> stretches_of(const Plan& plan);

/// What the launcher says of this process, which must be of as many ranks as the plan.
[[nodiscard]] JobEnvironment environment_for(const Plan& plan, const std::string& file);

} // namespace reckon
