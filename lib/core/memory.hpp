// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace reckon {

/// Memory that can be taken without pressing others: MemAvailable of /proc/meminfo, or the rest of
/// our cgroup's limit if that is less; UINT64_MAX when unknown.
[[nodiscard]] std::uint64_t available_memory_bytes();

} // namespace reckon
