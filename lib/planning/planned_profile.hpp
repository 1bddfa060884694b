// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "documents/workload.hpp"

#include <optional>
#include <string>

namespace reckon {

struct PlannedProfile {
  Profile profile;
  DocumentLink link;
  std::string file; ///< or shipped name
};
struct PlannedWorkload {
  Workload workload;
  std::string file; ///< or shipped name
};

/// What a plan of that file was made from: the file that the link names, the shipped document of
/// the link's name, or a file beside the plan, whichever has the link's digest; nothing where none
/// has.
[[nodiscard]] std::optional<PlannedProfile> find_profile(const DocumentLink& link,
                                                         const std::string& plan_file);
[[nodiscard]] std::optional<PlannedWorkload> find_workload(const DocumentLink& link,
                                                           const std::string& plan_file);

/// The profile `asked` for; where that is empty find_profile()'s. Another than the plan was made
/// from is warned of. Throws Error{usage} with what to give where there is none.
[[nodiscard]] PlannedProfile planned_profile(const Plan& plan, const std::string& plan_file,
                                             const std::string& asked);

} // namespace reckon
