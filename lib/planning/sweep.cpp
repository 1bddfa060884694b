// SPDX-License-Identifier: Apache-2.0
#include "planning/sweep.hpp"

#include "core/error.hpp"
#include "core/split.hpp"
#include "core/whole_number.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

std::uint64_t parse_count(std::string_view text, std::string_view what) {
  const auto value = whole_number<std::uint64_t>(text);
  if (!value || *value > 1'000'000) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' is not a whole number up to 1000000", what, text));
  }
  return *value;
}

std::vector<std::string> sweep_values(const std::string& text) {
  const std::string_view separator = text.find("..") == text.npos ? "," : "..";
  std::vector<std::string> values = split(text, separator);
  if (separator == ",") {
    return values;
  }
  const auto number = [&](std::size_t i) { return parse_count(values[i], "--sweep"); };
  const std::uint64_t first = number(0), last = number(1);
  const std::uint64_t step = values.size() > 2 ? number(2) : 1;
  if (values.size() > 3 || step == 0 || last < first || (last - first) / step > 10'000) {
    fail(ErrorKind::usage,
         fmt::format("--sweep {}: must rise, by a step above 0, over at most 10000 values", text));
  }
  values.clear();
  for (std::uint64_t v = first; v <= last; v += step) {
    values.push_back(std::to_string(v));
  }
  return values;
}

std::vector<SweptPlan> sweep(const std::vector<std::string>& values,
                             const std::function<Plan(const std::string&)>& make) {
  std::vector<SweptPlan> plans;
  std::optional<Error> why_not;
  for (const std::string& value : values) {
    SweptPlan& swept = plans.emplace_back();
    swept.value = value;
    try {
      swept.plan = make(value);
    } catch (const Error& error) { // what the other values give is still worth knowing
      if (error.kind() != ErrorKind::input) {
        throw;
      }
      why_not = error;
      swept.why_not = error.what();
    }
  }
  if (why_not && std::none_of(plans.begin(), plans.end(),
                              [](const SweptPlan& swept) { return swept.plan.has_value(); })) {
    throw *why_not;
  }
  return plans;
}

} // namespace reckon
