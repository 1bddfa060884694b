// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/predict.hpp"
#include "strategies/shares/job.hpp"

namespace reckon {

/// The gradient in parts of `part_bytes`, with the window asked for or the one solved for such
/// parts. `ring`: sums travel round the workers.
[[nodiscard]] PartShape shape_for(const SharesJob& job, double part_bytes, bool ring);

/// Part sizes whose predictions differ by no more than this part of the least are as good.
[[nodiscard]] double tolerance(const SharesJob& job);

} // namespace reckon
