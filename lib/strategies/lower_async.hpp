// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

/// Asynchronous training over parameter servers: plan.asynchronous->steps steps of every worker,
/// none of which waits for another worker. One iteration of the executor is such a run from the
/// first parameters on.
///
/// Updates at the workers (BytePS section 5, figure 11b): a worker steps its own parameters, sends
/// what that changed, and gets the latest parameters back; the server adds each change to the
/// latest as it comes. Updates at the server (Asynchronous Parallel, figure 11a): a worker sends
/// its gradient, the server steps the latest with it.
///
/// The server's lane does one op after another, so that an addition is never half in what it sends:
/// it copies the latest to a place of that worker's own, and sends that. A worker begins a step
/// when it has the latest of all parts of its lane. Slots are used in order through a window, as in
/// lower().
///
/// Throws Error{input} for a strategy without servers, for gradients other than fp32 and for an
/// optimizer with a state (docs/equations.md says why).
[[nodiscard]] Schedule lower_async(const Plan& plan);

} // namespace reckon
