// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The processors that this thread may use, ascending, as the operating system numbers them; none
/// when it does not say.
[[nodiscard]] std::vector<int> allowed_cpus();

/// Physical cores that these processors of this machine are on; as many as the processors where the
/// system does not say.
[[nodiscard]] std::size_t cores_of(const std::vector<int>& cpus);

/// The value of the first line "key : value" of a text as /proc/cpuinfo has it: of "model name" the
/// processors' model. Empty: there is none.
[[nodiscard]] std::string cpuinfo_value(const std::string& cpuinfo, std::string_view key);

/// Keeps this thread on one processor; false: the system refused.
[[nodiscard]] bool bind_this_thread(int cpu);

} // namespace reckon
