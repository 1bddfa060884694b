// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"

#include <string>

namespace reckon {

struct PlannedProfile {
  Profile profile;
  DocumentLink link;
};

/// The profile `asked` for; where that is empty the one that the plan of `plan_file` names, if it
/// is still what the plan was made from. Another than that is warned of. Throws Error{usage} with
/// what to give otherwise.
[[nodiscard]] PlannedProfile planned_profile(const Plan& plan, const std::string& plan_file,
                                             const std::string& asked);

} // namespace reckon
