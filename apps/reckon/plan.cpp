// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "plan_arguments.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "documents/document.hpp"
#include "planning/sweep.hpp"
#include "present/document_text.hpp"
#include "present/table.hpp"
#include "strategies/unknown_rates.hpp"

#include <fmt/format.h>

#include <memory>
#include <set>
#include <unistd.h>

namespace reckon {
namespace {

Json row_of(const std::string& name, const SweptPlan& swept) {
  if (!swept.plan) {
    return {{name, swept.value}, {"error", swept.why_not}};
  }
  const Plan& plan = *swept.plan;
  Json row{{name, swept.value},
           {"strategy", plan.strategy},
           {"part_bytes", plan.part_bytes},
           {"bound_seconds", plan.prediction.bound_seconds},
           {"busiest_seconds", plan.prediction.busy_seconds()},
           {"lo_seconds", plan.prediction.lo_seconds},
           {"mid_seconds", plan.prediction.mid_seconds},
           {"hi_seconds", plan.prediction.hi_seconds},
           {"assignment_gap", plan.assignment_gap},
           {"window_parts", plan.window_parts},
           {"bound_by", plan.prediction.bound_by},
           {"assumed", plan.assumed}};
  row["candidates_mid_seconds"] = Json::object();
  for (const Candidate& c : plan.candidates) {
    row["candidates_mid_seconds"][c.strategy] =
        c.prediction ? Json(c.prediction->mid_seconds) : Json(nullptr);
  }
  row["terms_seconds"] = Json::object();
  for (const Term& term : plan.prediction.terms) {
    row["terms_seconds"][term.name] = term.seconds;
  }
  return row;
}

std::string table_of(const std::string& name, const std::vector<SweptPlan>& plans,
                     const Style& style) {
  Table table(0);
  table.column(name, Align::right);
  table.columns("strategy|>part|>bound|>predicted|~binds");
  std::set<std::string> assumed;
  for (const auto& [value, plan, why_not] : plans) {
    if (plan) {
      assumed.insert(plan->assumed.begin(), plan->assumed.end());
      table.row({value, plan->strategy, to_text(Bytes(plan->part_bytes)),
                 to_text(Seconds(plan->prediction.bound_seconds)),
                 to_text(Seconds(plan->prediction.mid_seconds)), plan->prediction.bound_by});
    } else {
      table.row({value, "-", "-", "-", "-", why_not});
    }
  }
  std::string out = table.text(style);
  for (const std::string& sentence : assumed) {
    out += folded(printable("  assumed: " + sentence), style);
  }
  return out;
}

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
    write_file("-", fmt::format("{}\n", fmt::join(shipped_workloads(), "\n")));
    return k_exit_ok;
  }
  if (a.profile.empty() || a.workload.empty()) {
    fail(ErrorKind::usage, fmt::format("--{} is missing; plan needs a profile and a workload",
                                       a.profile.empty() ? "profile" : "workload"));
  }
  for (const std::string& text : a.set) {
    const auto [name, value] = split_assignment(text, "--set");
    set_argument(command, name, value);
  }
  refuse_overwriting(a.output, {a.profile, a.workload, a.roles}, "plan");
  const PlanDocuments documents = read_plan_documents(a.profile, a.workload, a.roles);
  const Style style = style_for(a.color, STDOUT_FILENO);
  const auto make = [&] {
    PlanRequest request = request_of(a);
    Progress progress;
    request.options.progress = [&](std::string_view step, double done) {
      progress.show(done, fmt::format("planning: {}", step));
    };
    return plan_as_asked(documents, request);
  };
  if (a.sweep.empty()) {
    const Plan plan = make();
    warn_of(plan, !a.json);
    hand_out(canonical_text(plan), a.output, a.json,
             [&] { return a.explain ? explain(plan, style) : render(plan, style); });
    return k_exit_ok;
  }
  const auto [name, text] = split_assignment(a.sweep, "--sweep");
  const auto plan_with = [&, &setting = name](const std::string& value) {
    set_argument(command, setting, value);
    return make();
  };
  const std::vector<SweptPlan> plans = sweep(sweep_values(text), plan_with);
  Json rows = Json::array();
  for (const SweptPlan& swept : plans) {
    rows.push_back(row_of(name, swept));
  }
  write_file("-", a.json ? canonical(rows) : table_of(name, plans, style));
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
