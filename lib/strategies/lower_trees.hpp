// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

/// Turns a plan whose parts go up and down trees (plan.trees) into what each rank does. A rank adds
/// what its children in the up tree sent to its own gradient, in place, and hands the sum on; a
/// rank without a gradient sums in a slot, or passes on what its only child sent. The root's sum
/// comes back the down tree. One window for each lane: a worker without children sends the i-th
/// part of the lane when the sum of the (i - window_parts)-th is back. As every branch of a tree
/// ends in such a worker, a slot is free when the part that used it is window_parts behind.
///
/// Throws Error{input} when a tree does not hold every worker once, or some rank hands a sum on
/// that it cannot have.
[[nodiscard]] Schedule lower_trees(const Plan& plan);

} // namespace reckon
