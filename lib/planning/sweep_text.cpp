// SPDX-License-Identifier: Apache-2.0
#include "planning/sweep_text.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

double exposed_seconds(const Plan& plan) {
  const double passes = plan.passes ? plan.passes->total_seconds() : 0;
  return std::max(0.0, plan.prediction.mid_seconds - passes);
}

/// What plans are sorted by; those without a plan come last.
std::pair<double, double> key_of(const SweptPlan& swept, const SweptCost& cost) {
  return swept.plan ? std::pair(cost.exposed_seconds, cost.price_of_step.value_or(0))
                    : std::pair(std::numeric_limits<double>::infinity(), 0.0);
}

/// "the workers' ports" of "the workers' ports: each sends its whole gradient (equation 8)".
std::string in_short(const std::string& bound_by) {
  std::size_t end = bound_by.size();
  for (const char* details : {": ", ", ", " (", " are "}) {
    end = std::min(end, bound_by.find(details));
  }
  return bound_by.substr(0, end);
}

/// "25Gb/s", as prices are listed.
std::string ports_text(const std::set<double>& bytes_per_s) {
  std::vector<std::string> ports;
  for (const double speed : bytes_per_s) {
    ports.push_back(fmt::format("{:.6g}Gb/s", speed * 8 / 1e9));
  }
  return fmt::format("{}", fmt::join(ports, ", "));
}

/// On two lines if it has two words.
std::string head_of(std::string setting) {
  const std::size_t last = setting.rfind('-');
  return last == setting.npos ? setting : setting.insert(last + 1, "\n");
}

void mark_best(Sweep& sweep) {
  for (std::size_t i = 0; i < sweep.plans.size(); ++i) {
    const auto [seconds, price] = key_of(sweep.plans[i], sweep.costs[i]);
    bool best = sweep.plans[i].plan.has_value();
    for (std::size_t j = 0; j < sweep.plans.size(); ++j) {
      const auto [other_seconds, other_price] = key_of(sweep.plans[j], sweep.costs[j]);
      best = best && !(other_seconds <= seconds && other_price <= price &&
                       (other_seconds < seconds || other_price < price));
    }
    sweep.costs[i].best = best;
  }
}

std::vector<std::size_t> sorted(const Sweep& sweep) {
  std::vector<std::size_t> order(sweep.plans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return key_of(sweep.plans[a], sweep.costs[a]) < key_of(sweep.plans[b], sweep.costs[b]);
  });
  return order;
}

/// A column of numbers of plans.
struct PlanColumn {
  std::string head;
  std::function<std::string(const Plan&, const SweptCost&)> text;
  bool strong = false; ///< for the best
};

/// Those between the strategy and what binds.
std::vector<PlanColumn> columns_of(const Sweep& sweep) {
  const auto ranged = [](const Plan& plan) {
    return is_range(plan.prediction.lo_seconds, plan.prediction.hi_seconds);
  };
  const auto any = [&](const auto& has) {
    return std::ranges::any_of(
        sweep.plans, [&](const SweptPlan& swept) { return swept.plan && has(*swept.plan); });
  };
  const auto seconds = [](double Prediction::*of) {
    return
        [of](const Plan& plan, const SweptCost&) { return to_text(Seconds(plan.prediction.*of)); };
  };
  std::vector<PlanColumn> out;
  out.push_back(
      {"part", [](const Plan& plan, const SweptCost&) { return to_text(Bytes(plan.part_bytes)); }});
  out.push_back({"bound", seconds(&Prediction::bound_seconds)});
  if (any([](const Plan& plan) { return plan.passes.has_value(); })) {
    out.push_back(
        {"exposed",
         [](const Plan&, const SweptCost& cost) { return to_text(Seconds(cost.exposed_seconds)); },
         true});
  }
  out.push_back({"predicted", seconds(&Prediction::mid_seconds), true});
  if (any(ranged)) {
    for (const auto& [head, end] : {std::pair("low", seconds(&Prediction::lo_seconds)),
                                    std::pair("high", seconds(&Prediction::hi_seconds))}) {
      out.push_back({head, [=, text = end](const Plan& plan, const SweptCost& cost) {
                       return ranged(plan) ? text(plan, cost) : "";
                     }});
    }
  }
  if (sweep.prices && !sweep.prices->ports.empty()) {
    out.push_back({"priced\nport",
                   [](const Plan&, const SweptCost& cost) { return ports_text(cost.ports); }});
  }
  if (sweep.prices) {
    out.push_back({fmt::format("{}/\n{}", sweep.prices->currency, sweep.prices->per),
                   [](const Plan&, const SweptCost& cost) { return significant(*cost.price, 4); }});
    out.push_back({fmt::format("{} a\n1000 steps", sweep.prices->currency),
                   [](const Plan&, const SweptCost& cost) {
                     return significant(*cost.price_of_step * 1000, 4);
                   },
                   true});
  }
  return out;
}

} // namespace

Sweep weighed(std::vector<std::string> names, std::vector<SweptPlan> plans,
              std::optional<Prices> prices) {
  Sweep sweep{std::move(names), std::move(plans), {}, std::move(prices)};
  std::optional<Error> why_not;
  for (SweptPlan& swept : sweep.plans) {
    SweptCost& cost = sweep.costs.emplace_back();
    if (!swept.plan) {
      continue;
    }
    cost.exposed_seconds = exposed_seconds(*swept.plan);
    if (sweep.prices) {
      try {
        cost.price = price_of(*swept.plan, *sweep.prices);
        cost.price_of_step = price_of_step(*swept.plan, *sweep.prices);
        cost.ports = priced_ports(*swept.plan, *sweep.prices);
      } catch (const Error& error) {
        why_not = error;
        swept.why_not = error.what();
        swept.plan.reset();
      }
    }
  }
  if (why_not && std::none_of(sweep.plans.begin(), sweep.plans.end(),
                              [](const SweptPlan& swept) { return swept.plan.has_value(); })) {
    throw *why_not;
  }
  mark_best(sweep);
  return sweep;
}

std::string render(const Sweep& sweep, const Style& style) {
  const std::vector<PlanColumn> columns = columns_of(sweep);
  Table table(0);
  table.column("");
  for (const std::string& name : sweep.names) {
    table.column(head_of(name), Align::right);
  }
  table.column("strategy");
  for (const PlanColumn& column : columns) {
    table.column(column.head, Align::right);
  }
  table.column("binds", Align::left, true);
  std::set<std::string> assumed;
  for (const std::size_t i : sorted(sweep)) {
    const auto& [values, plan, why_not] = sweep.plans[i];
    const SweptCost& cost = sweep.costs[i];
    std::vector<TableCell> row{{cost.best ? "*" : "", Tone::good}};
    row.insert(row.end(), values.begin(), values.end());
    row.emplace_back(plan ? plan->strategy : "-");
    for (const PlanColumn& column : columns) {
      row.emplace_back(plan ? column.text(*plan, cost) : "-",
                       column.strong && cost.best ? Tone::strong : Tone::plain);
    }
    row.emplace_back(plan ? in_short(plan->prediction.bound_by) : why_not);
    if (plan) {
      assumed.insert(plan->assumed.begin(), plan->assumed.end());
    }
    table.row(std::move(row));
  }
  std::string out = table.text(style);
  if (sweep.prices) {
    out += folded(fmt::format("  *: no other row exposes as little time at as low a cost of a "
                              "step{}",
                              sweep.prices->ports.empty()
                                  ? "; ports cost nothing: the prices have no \"ports\""
                                  : ""),
                  style);
  }
  for (const std::string& sentence : assumed) {
    out += folded(printable("  assumed: " + sentence), style);
  }
  return out;
}

Json to_json(const Sweep& sweep) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < sweep.plans.size(); ++i) {
    const auto& [values, swept, why_not] = sweep.plans[i];
    const SweptCost& cost = sweep.costs[i];
    Json& row = rows.emplace_back(Json::object());
    for (std::size_t s = 0; s < sweep.names.size(); ++s) {
      row["settings"][sweep.names[s]] = values[s];
    }
    if (!swept) {
      row["error"] = why_not;
      continue;
    }
    const Plan& plan = *swept;
    const Prediction& p = plan.prediction;
    row.update(Json{{"strategy", plan.strategy},
                    {"part_bytes", plan.part_bytes},
                    {"bound_seconds", p.bound_seconds},
                    {"busiest_seconds", p.busy_seconds()},
                    {"exposed_seconds", cost.exposed_seconds},
                    {"lo_seconds", p.lo_seconds},
                    {"mid_seconds", p.mid_seconds},
                    {"hi_seconds", p.hi_seconds},
                    {"best", cost.best},
                    {"assignment_gap", plan.assignment_gap},
                    {"window_parts", plan.window_parts},
                    {"bound_by", p.bound_by},
                    {"assumed", plan.assumed},
                    {"candidates_mid_seconds", Json::object()},
                    {"terms_seconds", Json::object()}});
    if (cost.price) {
      row["price"] = {{"currency", sweep.prices->currency},
                      {"per", sweep.prices->per},
                      {"machines", *cost.price},
                      {"step", *cost.price_of_step},
                      {"ports_bytes_per_second", cost.ports}};
    }
    for (const Candidate& c : plan.candidates) {
      row["candidates_mid_seconds"][c.strategy] =
          c.prediction ? Json(c.prediction->mid_seconds) : Json(nullptr);
    }
    for (const Term& term : p.terms) {
      row["terms_seconds"][term.name] = term.seconds;
    }
  }
  return rows;
}

} // namespace reckon
