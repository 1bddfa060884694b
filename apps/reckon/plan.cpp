// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "plan_arguments.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/interrupt.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "documents/document.hpp"
#include "planning/prices.hpp"
#include "planning/sweep.hpp"
#include "planning/sweep_text.hpp"
#include "present/document_text.hpp"
#include "strategies/unknown_rates.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <unistd.h>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// `shown`: the plan's table has what it assumes.
void warn_of(const Plan& plan, bool shown) {
  for (const std::string& sentence : plan.assumed) {
    if (!shown && sentence.starts_with(k_no_rate)) {
      log(LogLevel::warn, "{}", sentence);
    }
  }
  if (plan.one_queue) {
    log(LogLevel::warn, "--queues fcfs: the prediction has queues that nothing blocks; `reckon run "
                        "PLAN --check` says whether these can deadlock");
  }
}

int run_plan(Arguments& command, const PlanArguments& a) {
  if (a.list) {
    const std::vector<std::string> profiles = shipped_profiles(), workloads = shipped_workloads();
    write_file("-", a.json
                        ? canonical({{"profiles", profiles}, {"workloads", workloads}})
                        : fmt::format("profiles, for -p\n  {}\nworkloads, for -m\n  {}\n",
                                      fmt::join(profiles, "\n  "), fmt::join(workloads, "\n  ")));
    return k_exit_ok;
  }
  if (a.profile.empty() || a.workload.empty()) {
    fail(ErrorKind::usage, fmt::format("--{} is missing; plan needs a profile and a workload",
                                       a.profile.empty() ? "profile" : "workload"));
  }
  if (!a.prices.empty() && a.sweep.empty()) {
    fail(ErrorKind::usage,
         fmt::format("--prices {}: prices compare plans; add what they differ in, as in --sweep "
                     "servers=0,4 or --sweep port-bandwidth=25Gb/s,100Gb/s",
                     a.prices));
  }
  for (const std::string& text : a.set) {
    const auto [name, value] = split_assignment(text, "--set");
    set_argument(command, name, value);
  }
  refuse_overwriting(a.output, {a.profile, a.workload, a.roles}, "plan");
  require_writable(a.output);
  const PlanDocuments documents = read_plan_documents(a.profile, a.workload, a.roles);
  const Style style = style_for(a.color, STDOUT_FILENO);
  const auto make = [&] {
    PlanRequest request = request_of(a);
    Progress progress;
    request.options.progress = [&](std::string_view step, double done) {
      stop_if_interrupted();
      progress.show(done, fmt::format("planning: {}", step));
    };
    return plan_as_asked(documents, request);
  };
  if (a.sweep.empty()) {
    const Plan plan = make();
    stop_if_interrupted(); // what is there stays
    warn_of(plan, !a.json);
    hand_out(canonical_text(plan), a.output, a.json,
             [&] { return a.explain ? explain(plan, style) : render(plan, style); });
    return k_exit_ok;
  }
  std::vector<SweptSetting> settings;
  std::vector<std::string> names;
  for (const std::string& text : a.sweep) {
    const auto [name, values] = split_assignment(text, "--sweep");
    settings.push_back({name, sweep_values(values)});
    names.push_back(name);
  }
  const auto plan_with = [&](const std::vector<std::string>& values) {
    for (std::size_t s = 0; s < names.size(); ++s) {
      set_argument(command, names[s], values[s]);
    }
    return make();
  };
  std::optional<Prices> prices;
  if (!a.prices.empty()) {
    prices = read_prices(a.prices);
  }
  const Sweep swept = weighed(names, sweep(settings, plan_with), std::move(prices));
  write_file("-", a.json ? canonical(to_json(swept)) : render(swept, style));
  return k_exit_ok;
}

} // namespace

void add_plan_command(Arguments& program) {
  auto a = std::make_shared<PlanArguments>();
  Arguments& command =
      program.command("plan", "Decide how a model's gradients should travel on a profiled machine");
  command.example("reckon plan --profile profile.json --workload resnet50 -o plan.json");
  add_plan_options(command, *a);
  command.action([a, &command] { return run_plan(command, *a); });
}

} // namespace reckon
