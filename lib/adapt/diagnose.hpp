// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "adapt/slow_places.hpp"
#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "documents/report.hpp"
#include "schedule/timeline.hpp"

#include <optional>
#include <vector>

namespace reckon {

/// Finds the slow places of a run that took longer than predicted. `profile`: the plan's; `report`:
/// the run's, for its hosts and processor times; `timelines`: of all ranks in one iteration. Throws
/// Error{input} when the profile lacks what the plan needs.
[[nodiscard]] Diagnosis diagnose(const Plan& plan, const Profile& profile, const Report& report,
                                 const RankTimelines& timelines);

/// The profile with the rates of the slow places; absent where it cannot express them: machines
/// without names, pairs that were not measured, processors, passes.
[[nodiscard]] std::optional<Profile> with_slow_places(Profile profile, const Plan& plan,
                                                      const std::vector<SlowPlaceReport>& places);

} // namespace reckon
