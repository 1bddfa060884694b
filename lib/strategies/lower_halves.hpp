// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

/// Turns a plan of another collective than all-reduce into what each rank does.
///
/// Reduce-scatter, reduce: sums go up as in lower_trees(), and end at the roots. Nothing comes back
/// that could say that a slot is free, so a rank that has summed (or passed on) what a child sent
/// tells the child so, by a write of no bytes, where a later part of the child takes the same slot.
/// The child writes that part when it has heard so.
///
/// All-gather, broadcast: what a root has goes down into the gradients of all. A rank without a
/// gradient passes it on from a slot, and tells whoever writes there next. All others have a place
/// for every part; a rank sends the i-th part of a lane when its own writes of the (i -
/// window_parts)-th are over, so that a link is shared in proportion to the trees' parts.
///
/// Throws Error{input} as tree_places(), where the roots are not those of the collective (each
/// worker's n-th, or all at plan.root) and where the plan asks for more than the collective.
[[nodiscard]] Schedule lower_halves(const Plan& plan);

} // namespace reckon
