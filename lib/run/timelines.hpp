// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "launch/rendezvous.hpp"
#include "schedule/schedule.hpp"
#include "schedule/timeline.hpp"

namespace reckon {

/// All ranks' timelines of an iteration of this schedule, at every rank; each calls this with its
/// own. `limit`: of the meeting. Throws PeerError, which names a rank whose times do not fit the
/// schedule's ops.
[[nodiscard]] RankTimelines gather_timelines(Rendezvous& rendezvous, const Schedule& schedule,
                                             const RankTimeline& mine, Seconds limit);

} // namespace reckon
