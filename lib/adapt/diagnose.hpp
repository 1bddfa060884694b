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

/// Of a run that took longer than predicted: which places were slow. `profile`: that the plan was
/// made from; `report`: of the run, for its hosts and processor times; `timelines`: of all ranks in
/// one iteration. Throws Error{input} when the profile lacks what the plan needs.
[[nodiscard]] Diagnosis diagnose(const Plan& plan, const Profile& profile, const Report& report,
                                 const RankTimelines& timelines);

/// The profile with the rates that the slow places have; nothing where it has none that say so: of
/// machines without names, pairs that were not measured, processors, passes.
[[nodiscard]] std::optional<Profile> with_slow_places(Profile profile, const Plan& plan,
                                                      const std::vector<SlowPlaceReport>& places);

} // namespace reckon
