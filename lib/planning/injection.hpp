// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "documents/document.hpp"
#include "schedule/schedule.hpp"

#include <string>

namespace reckon {

/// `run --inject`: links to emulate, and whose they are.
struct Injection {
  StationNetwork network;
  DocumentLink profile;
};

/// The links that the profile in file `path` has between the plan's ranks: those that the plan's
/// prediction is played on (network_of() of strategies/plan_network.hpp). `schedule` is the plan's.
/// Throws Error{input} when the profile lacks such a machine or endpoint, or a way that the
/// schedule takes.
[[nodiscard]] Injection injection_of(const Plan& plan, const Schedule& schedule,
                                     const std::string& path);

} // namespace reckon
