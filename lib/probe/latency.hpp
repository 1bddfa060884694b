// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/workbench.hpp"

#include <cstdint>
#include <span>

namespace reckon {

inline constexpr const char* k_core_to_core = "core_to_core_latency_cas";
inline constexpr const char* k_memory_latency = "memory_latency_chase";

/// How long until another core sees a changed cache line: two pinned threads hand one line back and
/// forth by compare-and-swap; the value is one way, half of a round trip (measuring.md rule 11).
/// All ordered pairs of up to 16 cores; of more, of 16 that are spread evenly.
[[nodiscard]] Campaign core_latency_campaign(Workbench& bench);

/// How long a dependent load takes, over footprints from 16 KiB to beyond the caches on the first
/// node, and at the largest footprint from each node to each memory (rule 10). `from` is where the
/// thread runs, `to` where the memory is. Tells the bench, which derives the size of the
/// last-level cache.
[[nodiscard]] Campaign memory_latency_campaign(Workbench& bench);

/// Links the lines (64 bytes) of `memory` to one cycle that visits every line once, in random order
/// within regions of `region_bytes` that are visited in random order, and returns its first line. A
/// line holds the address of the next in its first 8 bytes. `memory` starts at a line and holds at
/// least one.
[[nodiscard]] void** build_chase(std::span<std::byte> memory, std::size_t region_bytes,
                                 std::uint64_t seed);

} // namespace reckon
