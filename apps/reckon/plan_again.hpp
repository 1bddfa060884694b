// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"

#include <optional>
#include <string>

namespace reckon {

/// A plan as it would be made again.
struct PlanAgain {
  std::string command; ///< of `reckon plan`, with another profile's file
  /// Of the plan that it gives; absent where its documents are not at hand.
  std::optional<double> seconds{};
};

/// What `reckon plan` with the options that made the plan gives with another profile. `plan_file`:
/// its workload is looked for beside it. `profile`: absent where only the command is wanted.
[[nodiscard]] PlanAgain plan_again(const Plan& plan, const std::string& plan_file,
                                   const std::optional<Profile>& profile,
                                   const std::string& profile_file);

} // namespace reckon
