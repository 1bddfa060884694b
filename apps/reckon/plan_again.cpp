// SPDX-License-Identifier: Apache-2.0
#include "plan_again.hpp"

#include "command_line.hpp"
#include "plan_arguments.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "documents/document.hpp"
#include "planning/planned_profile.hpp"
#include "planning/request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// Options of `reckon plan` with their values, "yes" for those that take none, from what a plan
/// says of them.
std::vector<std::pair<std::string, std::string>> given(const Plan& plan) {
  std::vector<std::pair<std::string, std::string>> options;
  if (plan.options.contains("inside")) {
    options.emplace_back("inside", "yes");
  }
  if (plan.options.contains("async_steps")) {
    options.emplace_back("async", "yes");
  }
  for (const auto& [key, text] : plan.options) {
    std::string name = key == "window_parts" ? "window" : key == "inside" ? "machine" : key;
    std::string value = text;
    if (value == "auto" ||
        (plan.roles && (name == "places" || name == "workers" || name == "servers"))) {
      continue;
    }
    if (name == "contention") { // "gemm_256, dedicated cores"
      const std::size_t comma = value.find(", ");
      if (comma == std::string::npos) {
        fail(ErrorKind::input, fmt::format("the plan's option contention is '{}'", value));
      }
      options.emplace_back("contention", value.substr(0, comma));
      options.emplace_back("processors", value.substr(comma + 2, value.rfind(' ') - comma - 2));
      continue;
    }
    std::replace(name.begin(), name.end(), '_', '-');
    std::erase(value, ' '); // "0.1 s"
    options.emplace_back(std::move(name), std::move(value));
  }
  return options;
}

} // namespace

PlanAgain plan_again(const Plan& plan, const std::string& plan_file,
                     const std::optional<Profile>& profile, const std::string& profile_file) {
  const std::optional<PlannedWorkload> workload = find_workload(plan.workload, plan_file);
  PlanAgain again;
  again.command = fmt::format("reckon plan --profile {} --workload {}", profile_file,
                              workload ? workload->file : plan.workload.name);
  if (plan.roles) {
    again.command += " --roles " + plan.roles->name;
  }
  Arguments program("reckon", "", "");
  PlanArguments arguments;
  Arguments& command = program.command("plan", "");
  add_plan_options(command, arguments);
  try {
    for (const auto& [name, value] : given(plan)) {
      const bool none = name == "servers" && value == "0"; // as without the option
      if (none || command.is_default(name, value)) {
        continue;
      }
      command.set(name, value);
      const bool quoted = value.find_first_of(";&| ") != std::string::npos;
      again.command += value == "yes"  ? fmt::format(" --{}", name)
                       : value == "no" ? fmt::format(" --{}=no", name)
                       : quoted        ? fmt::format(" --{} '{}'", name, value)
                                       : fmt::format(" --{} {}", name, value);
    }
    if (profile && workload && !plan.roles) {
      again.seconds =
          plan_as_asked({*profile, workload->workload, {}, plan.profile, plan.workload, {}},
                        request_of(arguments))
              .prediction.mid_seconds;
    }
  } catch (const Error& error) { // the run's own result is what counts
    log(LogLevel::info, "no new plan: {}", error.what());
  }
  return again;
}

} // namespace reckon
