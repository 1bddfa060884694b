// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "run/job.hpp"
#include "run_arguments.hpp"
#include "schedule/schedule.hpp"

#include <optional>

namespace reckon {

/// What the arguments ask of a run, whatever the plan is.
struct AskedRun {
  RunOptions options;
  double tolerance = 0;  ///< largest error of the prediction that passes
  Seconds peer_limit{0}; ///< a rank that was not heard of for longer is dead
};
/// Throws Error{usage} for values that an option has not.
[[nodiscard]] AskedRun asked_run(const RunArguments& arguments);

/// What the passes of a plan are. Throws Error{usage} or Error{input} where that cannot be.
[[nodiscard]] std::optional<PassCompute> compute_of(const RunArguments& arguments,
                                                    const Plan& plan);

/// Where to save and where to resume from. Throws Error{usage}, and Error{input} for a plan that
/// keeps nothing from one iteration to the next.
[[nodiscard]] CheckpointOptions checkpoints_of(const RunArguments& arguments, const Plan& plan);

/// Stretches the passes of the ranks that are to be slow: "RANK=2x", any number of them. Throws
/// Error{usage} for such that are not of this form, and Error{input} for ranks without passes.
void make_stragglers(Schedule& schedule, const RunArguments& arguments);

} // namespace reckon
