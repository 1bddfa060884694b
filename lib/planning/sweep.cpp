// SPDX-License-Identifier: Apache-2.0
#include "planning/sweep.hpp"

#include "core/error.hpp"
#include "core/split.hpp"
#include "core/whole_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

namespace {

/// Of all settings from the first on, each with all values of those after it.
std::vector<std::vector<std::string>> combinations(const std::vector<SweptSetting>& settings) {
  constexpr std::size_t k_most = 10'000;
  std::vector<std::vector<std::string>> all{{}};
  for (const SweptSetting& setting : settings) {
    const auto same = [&](const SweptSetting& other) { return other.name == setting.name; };
    if (std::count_if(settings.begin(), settings.end(), same) > 1) {
      fail(ErrorKind::usage, fmt::format("--sweep {} is given twice; write all its values in one, "
                                         "as in {}=1,2",
                                         setting.name, setting.name));
    }
    std::vector<std::vector<std::string>> longer;
    if (all.size() * setting.values.size() > k_most) {
      fail(ErrorKind::usage,
           fmt::format("--sweep {}: these are more than {} combinations; give fewer values",
                       setting.name, k_most));
    }
    for (const std::vector<std::string>& before : all) {
      for (const std::string& value : setting.values) {
        longer.push_back(before);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  return all;
}

} // namespace

std::vector<SweptPlan>
sweep(const std::vector<SweptSetting>& settings,
      const std::function<Plan(const std::vector<std::string>& values)>& make) {
  std::vector<SweptPlan> plans;
  std::optional<Error> why_not;
  for (std::vector<std::string>& values : combinations(settings)) {
    SweptPlan& swept = plans.emplace_back();
    swept.values = std::move(values);
    try {
      swept.plan = make(swept.values);
    } catch (const Error& error) { // what the others give is still worth knowing
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
