// SPDX-License-Identifier: Apache-2.0
#include "plan_sweep.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

/// "0..8", "0..8..2" or "1,2,4".
std::vector<std::string> sweep_values(const std::string& text) {
  std::vector<std::string> values;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const std::size_t second = text.find("..", dots + 2);
    const std::uint64_t first = parse_count(text.substr(0, dots), "--sweep");
    const std::uint64_t last = parse_count(
        text.substr(dots + 2, second == std::string::npos ? second : second - dots - 2), "--sweep");
    const std::uint64_t step =
        second == std::string::npos ? 1 : parse_count(text.substr(second + 2), "--sweep");
    if (step == 0 || last < first || (last - first) / step > 10'000) {
      fail(
          ErrorKind::usage,
          fmt::format("--sweep {}: must rise, by a step above 0, over at most 10000 values", text));
    }
    for (std::uint64_t v = first; v <= last; v += step) {
      values.push_back(std::to_string(v));
    }
    return values;
  }
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    values.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return values;
}

Json row_of(const std::string& name, const std::string& value, const Plan& plan) {
  Json row{{name, value},
           {"strategy", plan.strategy},
           {"part_bytes", plan.part_bytes},
           {"bound_seconds", plan.prediction.bound_seconds},
           {"lo_seconds", plan.prediction.lo_seconds},
           {"mid_seconds", plan.prediction.mid_seconds},
           {"hi_seconds", plan.prediction.hi_seconds},
           {"assignment_gap", plan.assignment_gap},
           {"window_parts", plan.window_parts},
           {"bound_by", plan.prediction.bound_by}};
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

} // namespace

int plan_sweep(const PlanArguments& arguments,
               const std::function<Plan(const std::string&, const std::string&)>& make) {
  const auto [name, text] = split_assignment(arguments.sweep, "--sweep");
  if (!arguments.output.empty()) {
    fail(ErrorKind::usage,
         "--sweep compares many plans and writes none: leave out -o, or use --json");
  }
  if (arguments.explain) {
    fail(ErrorKind::usage, "--sweep has a line for each plan: leave out --explain, or --set one");
  }
  Json rows = Json::array();
  Table table;
  table.column(name, Align::right)
      .column("strategy")
      .column("part", Align::right)
      .column("bound", Align::right)
      .column("predicted", Align::right)
      .column("binds", Align::left, true);
  std::size_t planned = 0;
  std::optional<Error> why_not;
  for (const std::string& value : sweep_values(text)) {
    std::optional<Plan> plan;
    try {
      plan = make(name, value);
    } catch (const Error& e) { // what the other values give is still worth knowing
      if (e.kind() != ErrorKind::input) {
        throw;
      }
      why_not = e;
      rows.push_back(Json{{name, value}, {"error", e.what()}});
      table.row({value, "-", "-", "-", "-", e.what()});
      continue;
    }
    ++planned;
    rows.push_back(row_of(name, value, *plan));
    table.row({value, plan->strategy, to_text(Bytes(plan->part_bytes)),
               to_text(Seconds(plan->prediction.bound_seconds)),
               to_text(Seconds(plan->prediction.mid_seconds)), plan->prediction.bound_by});
  }
  if (planned == 0 && why_not) {
    throw *why_not;
  }
  write_file("-", arguments.json ? canonical(rows)
                                 : table.text(style_for(arguments.color, STDOUT_FILENO)));
  return k_exit_ok;
}

} // namespace reckon
