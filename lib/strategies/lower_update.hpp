// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

/// Adds the optimizer's step to a schedule that sums gradients, whatever its strategy: it relies
/// only on what all of them have in common, that a part's last reduction at plan.parts.server is
/// its sum and that what is written into a worker's gradient is that sum on its way back.
///
/// Server: the step follows the sum, and the parameters travel back in its place. A server without
/// a gradient holds the parameters of its parts, a worker all of them.
/// Worker: every worker makes the step of every part once its sum is there. These come after all
/// else in a lane's program: nobody waits for them.
///
/// States lie part by part where the step is made, and nowhere else.
[[nodiscard]] Schedule with_update(const Schedule& sums, const Plan& plan);

/// Throws Error{input} that says that `what` is for gradients of fp32 only.
void require_fp32(const Plan& plan, const char* what);

} // namespace reckon
