// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/probe.hpp"

#include <string>

namespace reckon {

/// Measures this machine as `reckon probe --budget BUDGET` does, with its progress on standard
/// error; an empty budget is the usual one.
[[nodiscard]] ProbeResult measure_this_machine(const std::string& budget);

/// Throws Error{usage} unless writing a profile to `path` destroys nothing but an older profile, or
/// that was asked for with `force`.
void refuse_to_replace(const std::string& path, bool force = false);

} // namespace reckon
