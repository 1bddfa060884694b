// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "run/job.hpp"

#include <vector>

namespace reckon {

/// RunOptions::lane_cpus of the plan's rank: the processor of each lane, -1 where the plan names
/// none.
[[nodiscard]] std::vector<int> lane_cpus_of(const PlanRank& rank);

/// Makes this process the plan's rank: its lanes go where the plan has them, and the process keeps
/// to the processors next to the memory that a rank inside a machine stands for, so that what it
/// touches first is there too. Where this process may use none of these processors it stays on all:
/// the plan of another machine still moves its bytes. Throws Error{operation}.
void settle(RunOptions& options, const PlanRank& rank);

} // namespace reckon
