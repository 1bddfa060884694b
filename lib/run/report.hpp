// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/report.hpp"
#include "run/job.hpp"

#include <string>
#include <vector>

namespace reckon {

/// Seconds of each counted iteration (run/sample.hpp).
[[nodiscard]] std::vector<double> iteration_seconds(const JobResult& result);

/// Fills in the measurements around each change of plan. `segments`: seconds of the iterations with
/// the first plan, with the second, ...
void add_measured_gains(ReprofilingReport& reprofiling,
                        const std::vector<std::vector<double>>& segments);

/// What went wrong in a run, whatever time it took: wrong sums, else checkpoints that could not be
/// saved. Empty: nothing.
[[nodiscard]] std::string trouble_of(const Report& report);

/// Predicted beside measured: times, stages, and the term of the prediction with the largest error.
/// `cores`: processors that the ranks of one machine share.
[[nodiscard]] Report make_report(const Plan& plan, const DocumentLink& plan_link,
                                 const JobResult& result, const RunOptions& options,
                                 double tolerance, unsigned cores);

/// Fills in Report::machine_now: the plan's rehearsal took `before` the run, and `after` it, so
/// many seconds in each iteration. The machine's speed meanwhile is the median of both and of what
/// it was when it was probed. Where these differ from what it took when the machine was probed, a
/// run within the tolerance of what is predicted at the speed meanwhile passes, and the speed is
/// the cause if it explains most of the error. What other programs took from the run they took from
/// the rehearsals as well, so that a disturbed run keeps its verdict.
void judge_at_speed_now(Report& report, const RehearsalPlan& rehearsal,
                        const std::vector<double>& before, const std::vector<double>& after);

} // namespace reckon
