// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "run/job.hpp"

#include <vector>

namespace reckon {

/// RunOptions::lane_cpus of the plan's rank: the processor of each lane, -1 where the plan has no
/// processor.
[[nodiscard]] std::vector<int> lane_cpus_of(const PlanRank& rank);

/// Makes this process the plan's rank: its lanes go to the plan's processors, and the process keeps
/// to the processors next to the memory that a rank inside a machine stands for, so that memory it
/// touches first is there too. A process that may use none of these processors stays on all: the
/// plan of another machine still moves its bytes. Throws Error{operation}.
void settle(RunOptions& options, const PlanRank& rank);

} // namespace reckon
