// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace reckon {

/// The processors that this thread may use, ascending, as the operating system numbers them; none
/// when it does not say.
[[nodiscard]] std::vector<int> allowed_cpus();

/// Keeps this thread on one processor; false: the system refused.
[[nodiscard]] bool bind_this_thread(int cpu);

} // namespace reckon
