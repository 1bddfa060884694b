// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"

#include <optional>
#include <string>

namespace reckon {

/// A plan made anew.
struct PlanAgain {
  std::string command; ///< of `reckon plan`, with another profile's file
  /// Predicted seconds of the new plan; absent where its documents are missing.
  std::optional<double> seconds{};
};

/// The result of `reckon plan` with the plan's options and another profile. `plan_file`: its
/// workload is searched beside it. `profile`: absent for the command alone.
[[nodiscard]] PlanAgain plan_again(const Plan& plan, const std::string& plan_file,
                                   const std::optional<Profile>& profile,
                                   const std::string& profile_file);

} // namespace reckon
