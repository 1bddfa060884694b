// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"
#include "planning/request.hpp"
#include "strategies/contention.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// The command line of `reckon plan`.
struct PlanArguments {
  std::string profile, workload, roles, output;
  PlanRequest asked; ///< everything that --set and --sweep can change
  bool inside = false, async = false;
  InsidePlanOptions place; ///< for --inside
  ContentionRequest contention;
  std::uint64_t async_steps = 4;
  std::optional<int> bits; ///< for sums in whole numbers
  double gradient_bound = 1;
  std::vector<std::string> set, sweep;
  std::string prices; ///< file; empty: none
  bool json = false, explain = false, list = false;
  ColorMode color = ColorMode::automatic;
};

/// Adds the options to `command`; they write into `a`, which must live as long.
void add_plan_options(Arguments& command, PlanArguments& a);

/// Sets an option of `command` as --set and --sweep do. Throws Error{usage} for an unknown option.
void set_argument(Arguments& command, const std::string& name, const std::string& value);

/// The same for "name=value". Throws Error{usage}.
struct Assignment {
  std::string name, value;
};
[[nodiscard]] Assignment split_assignment(const std::string& text, std::string_view flag);

/// The whole request of the arguments to the planners. Throws Error{usage} for options that
/// contradict each other.
[[nodiscard]] PlanRequest request_of(const PlanArguments& a);

} // namespace reckon
