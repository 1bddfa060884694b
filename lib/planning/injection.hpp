// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "documents/document.hpp"
#include "schedule/schedule.hpp"

#include <string>

namespace reckon {

/// `run --inject`: the emulated links, and their profile.
struct Injection {
  StationNetwork network;
  DocumentLink profile;
};

/// The links between the plan's ranks in the profile of file `path`: those on which the plan's
/// prediction is played (network_of() of strategies/plan_network.hpp). `schedule` is the plan's.
/// Throws Error{input} when the profile lacks a machine or an endpoint of the plan, or a way that
/// the schedule takes.
[[nodiscard]] Injection injection_of(const Plan& plan, const Schedule& schedule,
                                     const std::string& path);

} // namespace reckon
