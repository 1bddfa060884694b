// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

/// Turns a plan into each rank's operations. Two shapes serve all strategies:
///
/// Parameter server (ps_noncolocated, ps_colocated, byteps_split; they differ only in who owns
/// which part): every worker writes each part into a slot at the part's server; the server sums
/// once all have come and writes the sum into every worker's gradient. A server that is itself a
/// worker sums in place and nothing of its own part leaves the machine. A lane's parts go in order
/// through one window: a worker writes the i-th part of the lane when the sums of all up to the
/// (i - window_parts)-th have begun to come back (credit in the words of BytePS 6.1 and
/// ByteScheduler), so that a link is shared in proportion to the servers' parts. A server's slot is
/// written again only after the sum of the part that used it has come back, which needs no message
/// of its own.
///
/// Ring: a part's sum starts at the rank after its owner, travels round to the owner
/// (reduce-scatter), then round again into every gradient (all-gather). A rank starts its i-th part
/// of a lane when the sum of its (i - window_parts)-th has come back.
///
/// Throws Error{input} when the plan's parts are too many for 32-bit tags, or its passes take more
/// than 1000 s.
[[nodiscard]] Schedule lower(const Plan& plan);

} // namespace reckon
