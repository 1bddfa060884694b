// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/workbench.hpp"

namespace reckon {

inline constexpr const char* k_numa_copy = "numa_to_numa_copy_cpu";
inline constexpr const char* k_numa_read = "numa_to_numa_read_cpu";
inline constexpr const char* k_numa_write = "numa_to_numa_write_cpu";
inline constexpr const char* k_stream_copy = "stream_copy";
inline constexpr const char* k_stream_add = "stream_add";

/// Rates between NUMA nodes from cold memory, for each pair of nodes, with one thread and with all.
/// Bytes go from `from` to `to`, each counted once (payload):
/// - copy: memcpy by threads next to `from`;
/// - read: threads next to `to` add up what lies on `from`;
/// - write: threads next to `from` fill memory of `to` (memset).
/// "two_way": half of the threads move the other way at the same time; the value is the sum of both
/// directions, the remark gives each (measuring.md rule 15). A pair is measured two-way once, with
/// from <= to; on one node the two streams run through it in opposite directions.
[[nodiscard]] Campaign numa_bandwidth_campaign(Workbench& bench);

/// What this machine's memory gives at most, as STREAM counts it (reads and writes, without what
/// the hardware reads before writing): copy, a = b, and add, a = b + c, by number of threads over
/// all nodes and, where there are several nodes, by all threads of each. The better of ordinary
/// and non-temporal stores. These are the ceilings of the other cells.
[[nodiscard]] Campaign stream_campaign(Workbench& bench);

} // namespace reckon
