// SPDX-License-Identifier: Apache-2.0
#include "compare/quantity_unit.hpp"
#include "present/document_text.hpp"
#include "present/numbers.hpp"
#include "present/plan_sections.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <vector>

namespace reckon {
namespace {

std::string unbroken(const std::string& text) {
  return std::regex_replace(text, std::regex(" "), std::string(k_no_break));
}

/// Where it is most of the predicted time; else null.
const Quantity* latency_of(const Plan& plan) {
  const auto found = std::ranges::find(plan.quantities, k_latency_quantity, &Quantity::name);
  return found == plan.quantities.end() ? nullptr : &*found;
}

std::string limit_text(const Plan& plan, const Style& style) {
  std::string out =
      heading("limit", style) +
      folded(printable(fmt::format("  {} by {}", time_text(plan.prediction.bound_seconds),
                                   plan.prediction.bound_by)),
             style);
  if (plan.switch_sums) {
    out += folded(printable(fmt::format("  {} {}", time_text(plan.switch_sums->bound_seconds),
                                        plan.switch_sums->by)),
                  style);
  }
  if (!plan.prediction.relief.empty()) {
    out += folded(printable("  relief: " + plan.prediction.relief), style);
  }
  return out;
}

} // namespace

std::string prediction_text(const Plan& plan, const Style& style) {
  const Prediction& p = plan.prediction;
  Table table(2, "|>|~");
  table.row({"bound", time_text(p.bound_seconds), p.bound_by});
  if (plan.switch_sums) {
    table.row({"in switch", time_text(plan.switch_sums->bound_seconds), plan.switch_sums->by});
  }
  if (p.busiest_seconds) {
    table.row({"busiest", time_text(*p.busiest_seconds), p.busiest_by});
  }
  const std::string share =
      p.mid_seconds > 0
          ? fmt::format("; the bound is {} of it", percent_text(p.bound_seconds / p.mid_seconds))
          : "";
  table.row({{"predicted", Tone::strong},
             {time_text(p.mid_seconds), Tone::strong},
             range_text(p.lo_seconds, p.hi_seconds) + share});
  for (const Term& term : p.terms) {
    table.row({"  " + term.name, time_text(term.seconds),
               p.mid_seconds > 0 ? percent_text(term.seconds / p.mid_seconds) : ""});
  }
  if (const Quantity* const latency = latency_of(plan)) {
    table.row({"  of it latency", time_text(latency->value),
               percent_text(latency->value / p.mid_seconds)});
  }
  for (const std::string& sentence : plan.assumed) {
    table.row({{"assumed", Tone::warning}, "", sentence});
  }
  // Of trees, what runs inside the machine is predicted; what passes besides may take longer.
  for (const Quantity& q : plan.quantities) {
    constexpr double k_rounding = 1e-9;
    if (!plan.trees.empty() && q.name == "chosen_seconds" &&
        q.value > p.mid_seconds * (1 + k_rounding)) {
      table.row({"with the NICs", time_text(q.value),
                 "the busiest link needs for all traffic; not part of the prediction"});
    }
  }
  if (!p.relief.empty()) {
    table.row({"relief", "", p.relief});
  }
  return table.text(style);
}

std::string solved_text(const Plan& plan, const Style& style) {
  Table table(2, "|>|~");
  Table sources(2, "~");
  for (const Quantity& q : plan.quantities) {
    if (q.name == "profile" && q.inputs.empty()) {
      sources.row({q.equation});
      continue;
    }
    std::vector<std::string> inputs;
    for (const auto& [name, value] : q.inputs) {
      inputs.push_back(unbroken(
          fmt::format("{} = {}", name, quantity_text(value, unit_of_input(name, q.inputs)))));
    }
    table.row({q.name, quantity_text(q.value, unit_of_quantity(q.name)), q.equation});
    if (!inputs.empty()) {
      table.row({"", "", {fmt::format("with {}", fmt::join(inputs, ", ")), Tone::dim}});
    }
  }
  std::string out = heading("solved", style) + table.text(style);
  return sources.empty() ? out
                         : out + heading("read from the profile", style) + sources.text(style);
}

std::string explain(const Plan& plan, const Style& style) {
  std::string out = solved_text(plan, style);
  if (!plan.routing.empty()) {
    out += routing_reasons(plan, style);
  }
  Table terms(2, "|>|>");
  const Prediction& p = plan.prediction;
  for (const Term& term : p.terms) {
    terms.row({term.name, time_text(term.seconds),
               p.mid_seconds > 0 ? percent_text(term.seconds / p.mid_seconds) : ""});
  }
  terms.row({{"predicted", Tone::strong}, {time_text(p.mid_seconds), Tone::strong}});
  if (const Quantity* const latency = latency_of(plan)) {
    terms.row(
        {"of it latency", time_text(latency->value), percent_text(latency->value / p.mid_seconds)});
  }
  out += heading("where the time goes", style) + terms.text(style);
  for (const std::string& sentence : plan.assumed) {
    out += folded(printable("  assumed: " + sentence), style);
  }
  out += limit_text(plan, style);
  return out.substr(1); // the first title needs no blank line before it
}

} // namespace reckon
