// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/workbench.hpp"

#include <cstdint>
#include <vector>

namespace reckon {

/// Time of a memcpy of 8 B to 64 MiB, or to 256 MiB if thorough: one thread, on its own node, back
/// to back. "warm": the same source and destination again and again; "cold": another place each
/// time, until all caches have been overwritten.
[[nodiscard]] Campaign memcpy_curve_campaign(Workbench& bench);

/// The sizes of a curve: usually powers of four, thoroughly powers of two and 1.5 times those.
/// `smallest` is a power of two.
[[nodiscard]] std::vector<std::uint64_t> curve_sizes(std::uint64_t smallest, std::uint64_t largest,
                                                     bool thorough);

} // namespace reckon
