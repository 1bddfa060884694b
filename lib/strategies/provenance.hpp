// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/planner.hpp"

#include <string>
#include <vector>

namespace reckon {

/// Writes into a plan the documents that it was made from, and the given options that every planner
/// of ranks on machines takes: strategy, transport, part size, window, whether the passes count,
/// the optimizer and the place of its steps, the bandwidths of made-up ports.
void add_provenance(Plan& plan, const PlanInputs& inputs, const PlanOptions& options);

/// The given seconds of the passes.
void add_pass_times(Plan& plan, double forward_s, double backward_s);

/// The profile's numbers that a plan was made from, as quantities.
void add_sources(std::vector<Quantity>& quantities, const std::vector<std::string>& sources);

/// Plans whose times differ by less, relatively, count as equal.
inline constexpr double k_alike = 0.002;
/// The fastest candidate other than the plan's own strategy, and its distance.
void compare_with_candidates(Plan& plan);

/// The given order of sending parts.
void add_order(Plan& plan, Order asked);

/// The part of the traffic that the plan's passes do not hide (equation 18), in the order that was
/// asked for. `forward_s` and `backward_s`: the passes' seconds in the plan's inputs.
[[nodiscard]] Quantity exposed_quantity(const Plan& plan, Order asked, double forward_s,
                                        double backward_s);

} // namespace reckon
