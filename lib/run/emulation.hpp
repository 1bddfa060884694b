// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "documents/report.hpp"
#include "movers/paced.hpp"
#include "run/job.hpp"

namespace reckon {

/// From now on `options` moves bytes at the times of `network`: make_paced_mover() around the
/// transport's own. `rank` is this process's; `record`, which may be null, outlives the job.
void emulate(RunOptions& options, const StationNetwork& network, int rank, PacingRecord* record);

/// Reports the profile of the emulated links, and the quality of the emulation. A difference is
/// then no longer explained by ranks that share one machine or by another transport.
void mark_emulated(Report& report, const DocumentLink& profile, const PacingRecord& record);

} // namespace reckon
