// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The processors that this thread may use, ascending, numbered by the operating system; empty when
/// unknown.
[[nodiscard]] std::vector<int> allowed_cpus();

/// The number of physical cores of these processors of this machine; the number of processors when
/// unknown.
[[nodiscard]] std::size_t cores_of(const std::vector<int>& cpus);

/// The value of the first line "key : value" of a text like /proc/cpuinfo: for "model name" the
/// processors' model. Empty: no such line.
[[nodiscard]] std::string cpuinfo_value(const std::string& cpuinfo, std::string_view key);

/// Keeps this thread on one processor; false: the system refused.
[[nodiscard]] bool bind_this_thread(int cpu);

} // namespace reckon
