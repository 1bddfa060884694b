// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "launch/rendezvous.hpp"
#include "schedule/timeline.hpp"

namespace reckon {

/// All ranks' timelines, at every rank; each calls this with its own. `limit`: of the meeting.
[[nodiscard]] RankTimelines gather_timelines(Rendezvous& rendezvous, const RankTimeline& mine,
                                             Seconds limit);

} // namespace reckon
