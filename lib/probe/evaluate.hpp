// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <vector>

namespace reckon {

/// alpha + bytes/beta per segment, and the knee, for each group of cells that differ only in bytes
/// and whose bytes are the size of a message: host_memcpy and fabric_*. Cells without a value do
/// not count; groups of fewer than 5 sizes get no fit.
[[nodiscard]] std::vector<Fit> fits_of(const std::vector<Cell>& cells);

/// Names the ceiling of each rate that has none: of copies, reads, writes, sums and optimizer
/// steps, the memory traffic that the STREAM-like cells reached with as many threads (for NUMA
/// pairs: with all), converted to how the cell counts bytes.
void add_ceilings(std::vector<Cell>& cells);

} // namespace reckon
