// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/planner.hpp"

#include <string>
#include <vector>

namespace reckon {

/// Writes into a plan which documents it was made from, and of what was asked for that which every
/// planner of ranks on machines takes: strategy, transport, part size, window, whether the passes
/// count, the optimizer and where it makes its steps, the bandwidths of ports that are made up.
void add_provenance(Plan& plan, const PlanInputs& inputs, const PlanOptions& options);

/// How long the passes were said to take, in seconds.
void add_pass_times(Plan& plan, double forward_s, double backward_s);

/// What of the profile a plan was made from, as quantities.
void add_sources(std::vector<Quantity>& quantities, const std::vector<std::string>& sources);

/// Plans whose times differ by less, relatively, are as good as each other.
inline constexpr double k_alike = 0.002;
/// The candidate that would be fastest if not for the plan's own strategy, and how far off it is.
void compare_with_candidates(Plan& plan);

/// In which order parts were asked to be sent.
void add_order(Plan& plan, Order asked);

/// What of the traffic the plan's passes do not hide (equation 18). `forward_s` and `backward_s`:
/// theirs, as its inputs say.
[[nodiscard]] Quantity exposed_quantity(const Plan& plan, double forward_s, double backward_s);

} // namespace reckon
