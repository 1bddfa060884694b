// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/report.hpp"
#include "run/job.hpp"

#include <string>

namespace reckon {

/// Predicted beside measured: times, stages, and which term of the prediction missed most.
/// `cores`: processors that the ranks of one machine share.
[[nodiscard]] Report make_report(const Plan& plan, const DocumentLink& plan_link,
                                 const JobResult& result, const RunOptions& options,
                                 double tolerance, unsigned cores);

} // namespace reckon
