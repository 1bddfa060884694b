// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planning/request.hpp"

#include <vector>

namespace reckon {

/// The ranks of the first machines of the profile whose group has such places, machine by machine;
/// those of the last group, or the next of the same, only sum.
/// Throws Error{usage} and Error{input} where there are not as many.
[[nodiscard]] std::vector<PlanRank> ranks_to_place(const Profile& profile,
                                                   const PlanRequest& request);

} // namespace reckon
