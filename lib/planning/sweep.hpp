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

/// One value of a sweep: its plan, or the reason why it has no plan.
struct SweptPlan {
  std::string value;
  std::optional<Plan> plan;
  std::string why_not;
};

/// Plans with `make` for each value. An Error{input} stays with its value, unless no value has a
/// plan: then it is thrown, as every other error.
[[nodiscard]] std::vector<SweptPlan> sweep(const std::vector<std::string>& values,
                                           const std::function<Plan(const std::string&)>& make);

} // namespace reckon
