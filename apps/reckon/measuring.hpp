// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/probe.hpp"

#include <string>

namespace reckon {

/// Measures this machine as `reckon probe --time BUDGET` does, with progress on standard error;
/// an empty budget is the default.
[[nodiscard]] ProbeResult measure_this_machine(const std::string& budget);

} // namespace reckon
