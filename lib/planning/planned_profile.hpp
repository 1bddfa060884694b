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

/// The source of a plan of that file: the file that the link names, the shipped document of the
/// link's name, or a file beside the plan, whichever has the link's digest; absent if none has.
[[nodiscard]] std::optional<PlannedProfile> find_profile(const DocumentLink& link,
                                                         const std::string& plan_file);
[[nodiscard]] std::optional<PlannedWorkload> find_workload(const DocumentLink& link,
                                                           const std::string& plan_file);

/// The profile `asked` for; if empty find_profile()'s. Warns of a profile other than the plan's.
/// Throws Error{usage} with the option to give if no profile is found.
[[nodiscard]] PlannedProfile planned_profile(const Plan& plan, const std::string& plan_file,
                                             const std::string& asked);

} // namespace reckon
