// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/planner.hpp"

namespace reckon {

/// Writes into a plan which documents it was made from, and of what was asked for that which every
/// planner of ranks on machines takes: strategy, transport, part size, window, whether the passes
/// count.
void add_provenance(Plan& plan, const PlanInputs& inputs, const PlanOptions& options);

/// The bandwidths of ports that were made up, where they were.
void add_made_up_ports(Plan& plan, const CostModel::WhatIf& what_if);

/// In which order parts were asked to be sent.
void add_order(Plan& plan, Order asked);

/// What of the traffic the plan's passes do not hide (equation 18). `forward_s` and `backward_s`:
/// theirs, as its inputs say.
[[nodiscard]] Quantity exposed_quantity(const Plan& plan, double forward_s, double backward_s);

} // namespace reckon
