// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace reckon {

/// Memory that can be taken without pressing others: MemAvailable of /proc/meminfo, or the rest of
/// our cgroup's limit if that is less; UINT64_MAX when unknown.
[[nodiscard]] std::uint64_t available_memory_bytes();

/// Bytes of memory of a NUMA node of the system, now: a virtual machine may get more while it runs.
/// Absent where the system does not say.
[[nodiscard]] std::optional<std::uint64_t> node_memory_bytes(int os_index);

} // namespace reckon
