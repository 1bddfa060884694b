// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace reckon {

/// Memory that may be taken without pressing others: MemAvailable of /proc/meminfo, or what is left
/// of our cgroup's limit if that is less; UINT64_MAX when the system does not say.
[[nodiscard]] std::uint64_t available_memory_bytes();

} // namespace reckon
