// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// A whole number up to a million. Throws Error{usage}, which begins with `what`.
[[nodiscard]] std::uint64_t parse_count(std::string_view text, std::string_view what);

/// Values of a setting: "0..8", "0..8..2" or "1,2,4". Throws Error{usage}.
[[nodiscard]] std::vector<std::string> sweep_values(const std::string& text);

/// A setting of a plan and the values that are tried.
struct SweptSetting {
  std::string name;
  std::vector<std::string> values;
};

/// One combination of values: its plan, or why there is none.
struct SweptPlan {
  std::vector<std::string> values; ///< one a setting
  std::optional<Plan> plan;
  std::string why_not{};
};

/// Plans with `make` for each combination of the settings' values, in the order of the values,
/// those of the last setting changing first. An Error{input} is of that combination alone, unless
/// none has a plan: then it is thrown, as is every other. Throws Error{usage} for more than 10000
/// combinations and for a setting that is there twice.
[[nodiscard]] std::vector<SweptPlan>
sweep(const std::vector<SweptSetting>& settings,
      const std::function<Plan(const std::vector<std::string>& values)>& make);

} // namespace reckon
