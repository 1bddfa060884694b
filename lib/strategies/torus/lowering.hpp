// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

/// Turns a plan over a torus (plan.torus) into what each rank does. In every ring that a part goes
/// through, the sum begins with the node after the one that is where the part's server is, and goes
/// round until it comes to that one; from there the sum goes round the same way to those that need
/// it. A rank sums in place, in its gradient, and what its neighbour sends lies in a slot of its
/// own for each dimension. One window for each lane: a rank begins with the i-th part of the lane
/// when the whole sum of the (i - window_parts)-th is back. Whoever writes into a slot of part i
/// has that sum back, and in it is what the slot's rank added: the slot is free.
///
/// Throws Error{input} when the plan has trees as well, a rank without a gradient, or too many
/// parts.
[[nodiscard]] Schedule lower_torus(const Plan& plan);

} // namespace reckon
