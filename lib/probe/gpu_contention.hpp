// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/gpu_places.hpp"

#include <memory>
#include <vector>

namespace reckon {

/// What transfers and computations on a GPU do to each other (ACE, section III and figure 4a):
/// copies to the host and sums of two operands of 1, 10 and 100 MiB beside fp32 matrix products of
/// side 500 and 1000 (cuBLAS) and embedding lookups of 1000 and 10000 bags.
///
/// contention_communication: seconds of a communication of `bytes`, alone (no `operation`) and
/// while `operation` runs over and over. contention_compute: seconds of `operation`, alone (no
/// `bytes`) and while communications of `bytes` do.
[[nodiscard]] std::vector<CellPlan> gpu_contention_plans(const std::shared_ptr<GpuPlaces>& places);

} // namespace reckon
