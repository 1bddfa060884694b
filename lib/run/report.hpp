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

/// Share of a machine's processors that other programs used during the counted iterations, 0 or
/// more. `cores`: processors that the ranks share. 0 for ranks on several machines.
[[nodiscard]] double others_share(const JobResult& result, unsigned cores);

/// Whether other programs that used `others` of the processors explain a run that took longer than
/// its prediction: then no other measurement explains it. `report`: with its times.
[[nodiscard]] bool disturbed(const Report& report, double others);

/// Predicted beside measured: times, stages, and the term of the prediction with the largest error.
/// `cores`: processors that the ranks of one machine share.
[[nodiscard]] Report make_report(const Plan& plan, const DocumentLink& plan_link,
                                 const JobResult& result, const RunOptions& options,
                                 double tolerance, unsigned cores);

} // namespace reckon
