// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run_arguments.hpp"
#include "schedule/schedule.hpp"
#include "schedule/timeline.hpp"

#include <string>

namespace reckon {

/// Throws Error{usage} where --trace is standard output, or a file that is no trace.
void check_trace(const RunArguments& arguments);

/// Writes every rank's times, for --trace.
void write_trace(const Schedule& schedule, RankTimelines timelines, const std::string& file);

} // namespace reckon
