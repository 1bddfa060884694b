// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

/// Turns a plan whose parts go up and down trees (plan.trees) into what each rank does. A rank adds
/// what its children in the up tree sent to its own gradient, in place, and hands the sum on; a
/// rank without a gradient sums in a slot, or passes on what its only child sent. The root's sum
/// comes back the down tree. Of each lane's window_parts every tree has its own, more of them the
/// longer its parts live: a worker without children sends a tree's i-th part when the sum of the
/// part before that by the tree's window is back, and what the parts shortly before in the lane
/// waited for. As every branch of a tree ends in such a worker, a slot is free when the part that
/// used it is a window behind. Where lives are unknown all trees of a lane share one window.
///
/// Throws Error{input} when a tree does not hold every worker once, or some rank hands a sum on
/// that it cannot have.
[[nodiscard]] Schedule lower_trees(const Plan& plan);

} // namespace reckon
