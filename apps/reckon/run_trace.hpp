// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/rendezvous.hpp"
#include "run_arguments.hpp"
#include "schedule/schedule.hpp"
#include "schedule/timeline.hpp"

namespace reckon {

/// Throws Error{usage} where --trace names no file of its own.
void check_trace(const RunArguments& arguments);

/// Collects what every rank timed and writes it, at rank 0, for --trace.
void write_trace(Rendezvous& rendezvous, const Schedule& schedule, const RankTimeline& mine,
                 const RunArguments& arguments, Seconds limit);

} // namespace reckon
