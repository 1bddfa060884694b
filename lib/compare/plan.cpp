// SPDX-License-Identifier: Apache-2.0
#include "compare/build.hpp"
#include "compare/quantity_unit.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace reckon {
namespace {

using Named = std::pair<const std::string, double>;

std::string role_of(const PlanRank& rank) {
  if (rank.worker && rank.server) {
    return "worker and server";
  }
  return rank.worker ? "worker" : (rank.server ? "server" : "neither");
}

/// "eth0 node 0 processor 3, eth1"; empty: its lanes have no places.
std::string places_text(const PlanRank& rank) {
  std::string text;
  for (const LanePlace& place : rank.lane_places) {
    text += (text.empty() ? "" : ", ") + place.port +
            (place.numa_node ? fmt::format(" node {}", *place.numa_node) : "") +
            (place.cpu ? fmt::format(" processor {}", *place.cpu) : "");
  }
  return text;
}

void compare_ranks(Builder& out, const Plan& before, const Plan& after) {
  const auto rank = [](const Plan& plan, std::size_t i) {
    return i < plan.ranks.size() ? &plan.ranks[i] : nullptr;
  };
  for (std::size_t i = 0; i < std::max(before.ranks.size(), after.ranks.size()); ++i) {
    const PlanRank *const a = rank(before, i), *const b = rank(after, i);
    const Both<PlanRank> ranks(out, "ranks", fmt::format("ranks/{}", i), a, b);
    if (a == nullptr || b == nullptr) {
      ranks.text("rank", "",
                 [](const PlanRank& r) { return fmt::format("{} on {}", role_of(r), r.machine); });
      continue;
    }
    ranks.text("rank", "/machine", &PlanRank::machine);
    ranks.text("rank", "/rack", &PlanRank::rack);
    ranks.text("rank", "/role", role_of);
    ranks.number("rank", "/lanes", &PlanRank::lanes, "");
    ranks.number("port", "/port_bytes_per_second", &PlanRank::port_bytes_per_second,
                 "bytes_per_second");
    ranks.text("port", "/lane_places", places_text);
    ranks.number("share", "/share_bytes", &PlanRank::share_bytes, "bytes");
    ranks.count("share", "/assigned_bytes", &PlanRank::assigned_bytes, "bytes");
    ranks.count("traffic", "/egress_bytes", &PlanRank::egress_bytes, "bytes");
    ranks.count("traffic", "/ingress_bytes", &PlanRank::ingress_bytes, "bytes");
  }
}

struct Amount {
  std::uint64_t parts = 0, bytes = 0;
};

/// What of the gradient is summed elsewhere than before. The two plans may be cut differently, so
/// it is the bytes that are followed: `parts` counts the stretches that are one piece in both.
void compare_assignment(Builder& out, const Parts& before, const Parts& after) {
  const std::vector<std::size_t> a_order = before.by_offset();
  const std::vector<std::size_t> b_order = after.by_offset();
  std::map<std::pair<std::uint64_t, std::uint64_t>, Amount> moved; // server -> server
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, Amount>
      moved_lane; // server; lane -> lane
  std::size_t i = 0;
  std::size_t j = 0;
  bool equally_cut = before.size() == after.size();
  while (i < a_order.size() && j < b_order.size()) {
    const std::size_t a = a_order[i];
    const std::size_t b = b_order[j];
    const std::uint64_t a_end = before.offset_bytes[a] + before.bytes[a];
    const std::uint64_t b_end = after.offset_bytes[b] + after.bytes[b];
    const std::uint64_t begin = std::max(before.offset_bytes[a], after.offset_bytes[b]);
    const std::uint64_t end = std::min(a_end, b_end);
    equally_cut = equally_cut && before.offset_bytes[a] == after.offset_bytes[b] && a_end == b_end;
    if (begin < end) {
      Amount* amount = nullptr;
      if (before.server[a] != after.server[b]) {
        amount = &moved[{before.server[a], after.server[b]}];
      } else if (before.lane[a] != after.lane[b]) {
        amount = &moved_lane[{before.server[a], before.lane[a], after.lane[b]}];
      }
      if (amount != nullptr) {
        ++amount->parts;
        amount->bytes += end - begin;
      }
    }
    i += a_end <= b_end ? 1 : 0;
    j += b_end <= a_end ? 1 : 0;
  }
  out.compared(std::max(before.size(), after.size()));
  const auto add = [&](std::string_view kind, std::string_view where, std::string from,
                       std::string to, const Amount& amount) {
    Difference d =
        difference(kind, "parts", where, text_side(std::move(from)), text_side(std::move(to)));
    d.parts = amount.parts;
    d.bytes = amount.bytes;
    out.add(std::move(d));
  };
  for (const auto& [servers, amount] : moved) {
    add("moved", "parts/server", fmt::format("rank {}", servers.first),
        fmt::format("rank {}", servers.second), amount);
  }
  for (const auto& [key, amount] : moved_lane) {
    const auto& [server, from, to] = key;
    add("lane", fmt::format("parts/lane of rank {}", server), fmt::format("lane {}", from),
        fmt::format("lane {}", to), amount);
  }
  if (equally_cut) {
    Amount amount;
    std::size_t first = before.size();
    for (std::size_t k = 0; k < before.size(); ++k) {
      if (before.offset_bytes[k] != after.offset_bytes[k]) {
        first = std::min(first, k);
        ++amount.parts;
        amount.bytes += before.bytes[k]; // the same set of parts on both sides, hence the same sum
      }
    }
    if (amount.parts > 0) {
      const auto sent = [first](const Parts& parts) {
        return fmt::format("part {} begins at byte {}", first, parts.offset_bytes[first]);
      };
      add("order", "parts", sent(before), sent(after), amount);
    }
  }
}

void compare_prediction(Builder& out, std::string_view group, const std::string& path,
                        const Prediction& before, const Prediction& after) {
  const Both<Prediction> both(out, group, path, &before, &after);
  const auto seconds = [&](std::string_view kind, std::string_view name,
                           double Prediction::*member) {
    both.number(kind, name, member, "seconds", Better::lower);
  };
  seconds("bound", "/bound_seconds", &Prediction::bound_seconds);
  seconds("time", "/mid_seconds", &Prediction::mid_seconds);
  if (group == "prediction") { // of the others one number tells enough
    seconds("time", "/lo_seconds", &Prediction::lo_seconds);
    seconds("time", "/hi_seconds", &Prediction::hi_seconds);
  }
}

void compare_terms(Builder& out, const std::vector<Term>& before, const std::vector<Term>& after) {
  for (const auto& [name, sides] : paired(before, after, &Term::name)) {
    Both<Term>(out, "prediction", "prediction/terms/" + name, sides.first, sides.second)
        .number("term", "", &Term::seconds, "seconds", Better::lower);
  }
}

void compare_candidates(Builder& out, const Plan& before, const Plan& after) {
  for (const auto& [strategy, sides] :
       paired(before.candidates, after.candidates, &Candidate::strategy)) {
    // The chosen ones are compared in full already.
    if (strategy == before.strategy && strategy == after.strategy) {
      continue;
    }
    const auto& [a, b] = sides;
    const std::string path = "candidates/" + strategy;
    const auto state = [](const Candidate* c) -> std::string {
      return c == nullptr ? "not considered"
                          : (c->prediction ? "applies" : "does not apply: " + c->reason);
    };
    if (a != nullptr && b != nullptr && a->prediction && b->prediction) {
      compare_prediction(out, "candidates", path, *a->prediction, *b->prediction);
    } else {
      out.text("candidate", "candidates", path, state(a), state(b));
    }
  }
}

/// A remark on what the planner read from the profile: its text stands as the equation.
bool is_source(const Quantity& q) {
  return q.name == "profile" && q.inputs.empty();
}

std::set<std::string> sources_of(const Plan& plan) {
  std::set<std::string> out;
  for (const Quantity& q : plan.quantities) {
    if (is_source(q)) {
      out.insert(q.equation);
    }
  }
  return out;
}

/// What only one of the plans was made from.
void compare_sources(Builder& out, const Plan& before, const Plan& after) {
  const std::set<std::string> a = sources_of(before);
  const std::set<std::string> b = sources_of(after);
  for (const std::string& source : a) {
    if (!b.contains(source)) {
      out.cause("read from the profile", text_side(source), Side{});
    }
  }
  for (const std::string& source : b) {
    if (!a.contains(source)) {
      out.cause("read from the profile", Side{}, text_side(source));
    }
  }
}

using QuantitySides = std::pair<const Quantity*, const Quantity*>;
using Quantities = std::map<std::string, QuantitySides>;

/// By name; a name that comes again gets its number.
void add_by_name(Quantities& all, const std::vector<Quantity>& quantities,
                 const Quantity* QuantitySides::*side) {
  std::map<std::string, int> seen;
  for (const Quantity& q : quantities) {
    if (!is_source(q)) {
      const int n = ++seen[q.name];
      all[n == 1 ? q.name : fmt::format("{} #{}", q.name, n)].*side = &q;
    }
  }
}

void compare_quantities(Builder& out, const Plan& before, const Plan& after) {
  Quantities all;
  add_by_name(all, before.quantities, &QuantitySides::first);
  add_by_name(all, after.quantities, &QuantitySides::second);
  // An input that is itself solved here is no cause: its own inputs are.
  using InputChange = std::tuple<std::string, std::optional<double>, std::optional<double>>;
  std::map<InputChange, std::set<std::string>> inputs;
  for (const auto& [name, sides] : all) {
    const auto& [p, q] = sides;
    const Both<Quantity> both(out, "quantities", "quantities/" + name, p, q);
    both.number("value", "", &Quantity::value, unit_of_quantity((p != nullptr ? p : q)->name));
    if (p == nullptr || q == nullptr) {
      continue;
    }
    both.text("equation", "/equation", &Quantity::equation);
    for (const auto& [input, numbers] : paired(p->inputs, q->inputs, &Named::first)) {
      const auto value = [](const Named* named) {
        return named != nullptr ? std::optional(named->second) : std::nullopt;
      };
      const auto x = value(numbers.first), y = value(numbers.second);
      const bool differs = x && y ? beyond(*x, *y, out.options().exact_tolerance) : x != y;
      if (differs && !all.contains(input)) {
        inputs[{input, x, y}].insert(name);
      }
    }
  }
  for (const auto& [change, users] : inputs) {
    const auto& [input, x, y] = change;
    const auto side = [unit = unit_of_input(input, all[*users.begin()].first->inputs)](
                          const std::optional<double>& v) {
      return v ? number_side(*v, unit) : Side{};
    };
    const std::string also = users.size() > 1 ? fmt::format(" and {} more", users.size() - 1) : "";
    out.cause(fmt::format("input {} of {}{}", input, *users.begin(), also), side(x), side(y));
  }
}

/// Numbers by name, of two plans: absent where only one has it.
void compare_named(Builder& out, std::string_view kind, std::string_view group,
                   std::string_view member, const std::map<std::string, double>& before,
                   const std::map<std::string, double>& after, std::string_view unit,
                   Better better = Better::neither) {
  for (const auto& [name, sides] : paired(before, after, &Named::first)) {
    Both<Named>(out, group, fmt::format("{}/{}/", group, name), sides.first, sides.second)
        .number(kind, member, &Named::second, unit, better);
  }
}

/// How much goes which way inside a machine, and what its links were taken to carry.
void compare_trees(Builder& out, const Plan& before, const Plan& after) {
  const auto shares = [](const Plan& plan) {
    std::map<std::string, double> by_scheme;
    for (const SumTree& tree : plan.trees) {
      by_scheme[tree.scheme] += tree.share;
    }
    return by_scheme;
  };
  const auto capacities = [](const Plan& plan) {
    std::map<std::string, double> by_name;
    for (const PlanResource& r : plan.resources) {
      by_name[r.name] = r.bytes_per_second;
    }
    return by_name;
  };
  compare_named(out, "share", "trees", "share", shares(before), shares(after), "ratio");
  compare_named(out, "capacity", "resources", "bytes_per_second", capacities(before),
                capacities(after), "bytes_per_second", Better::higher);
}

/// Where clients send their tensors, and which of them the workers keep for themselves.
void compare_routing(Builder& out, const Plan& before, const Plan& after) {
  for (const auto& [client, sides] : paired(before.routing, after.routing, &ProxyRoute::client)) {
    const Both<ProxyRoute> routes(out, "routing", fmt::format("routing/{}/", client), sides.first,
                                  sides.second);
    routes.text("route", "latency_proxy",
                [](const ProxyRoute& r) { return fmt::format("rank {}", r.latency_proxy); });
    routes.text("route", "bandwidth_proxy",
                [](const ProxyRoute& r) { return fmt::format("rank {}", r.bandwidth_proxy); });
    routes.number("threshold", "threshold_bytes", &ProxyRoute::threshold_bytes, "bytes");
    routes.number("part_size", "partition_bytes", &ProxyRoute::partition_bytes, "bytes");
  }
  const auto who = [](const Plan& plan) {
    std::map<std::string, std::string> by_name;
    for (const TensorRoute& t : plan.tensors) {
      by_name[t.name] = t.by_workers ? "workers" : "proxies";
    }
    return by_name;
  };
  const std::map<std::string, std::string> a = who(before), b = who(after);
  for (const auto& [name, by] : a) {
    if (const auto it = b.find(name); it != b.end()) {
      out.text("route", "tensors", "tensors/" + name, by, it->second);
    }
  }
}

/// The options of a plan, with what holds for those that the other one names and it does not: the
/// planner leaves out what was not asked for.
std::map<std::string, std::string> options_beside(const Plan& plan, const Plan& other) {
  static const std::map<std::string, std::string> k_unasked{
      {"gpu_direct", "no"},
      {"lanes", "auto"},
      {"network", "0"},
      {"optimizer", "none"},
      {k_port_bandwidth, "the profile's"},
      {"queues", "client"},
      {"reduction", "sum"},
      {"ring_directions", "auto"},
      {"server_port_bandwidth", "the profile's"},
      {"service", "0"},
      {"shards", "auto"},
      {"update", "none"},
      {"zero_compute", "no"}};
  std::map<std::string, std::string> out = plan.options;
  for (const auto& [name, value] : k_unasked) {
    if (other.options.contains(name)) {
      out.try_emplace(name, value);
    }
  }
  return out;
}

} // namespace

Comparison compare(const Plan& before, const Plan& after, const CompareOptions& options) {
  Builder out("plan", options);
  out.link("profile", before.profile, after.profile);
  out.link("workload", before.workload, after.workload);
  out.link("roles", before.roles, after.roles);
  out.causes_from("option", options_beside(before, after), options_beside(after, before));
  const bool inputs_differ = !out.result().causes.empty();

  const auto of = [&](std::string_view group) { return Both(out, group, "", &before, &after); };
  of("prediction").text("strategy", "strategy", &Plan::strategy);
  of("prediction").text("transport", "transport", &Plan::transport);
  compare_prediction(out, "prediction", "prediction", before.prediction, after.prediction);
  out.text("bound_by", "prediction", "prediction/bound_by", before.prediction.bound_by,
           after.prediction.bound_by);
  compare_terms(out, before.prediction.terms, after.prediction.terms);
  of("prediction").number("gap", "assignment_gap", &Plan::assignment_gap, "ratio", Better::lower);
  of("candidates").text("runner_up", "runner_up", &Plan::runner_up);
  compare_candidates(out, before, after);

  of("gradient").count("gradient", "gradient_bytes", &Plan::gradient_bytes, "bytes");
  of("gradient").text("gradient", "runs", [](const Plan& plan) {
    std::vector<std::string> runs;
    for (const DTypeRun& r : plan.runs) {
      runs.push_back(fmt::format("{} at {} for {}", name_of(r.dtype), r.offset_bytes, r.bytes));
    }
    return fmt::format("{}", fmt::join(runs, ", "));
  });
  compare_ranks(out, before, after);
  compare_trees(out, before, after);
  compare_routing(out, before, after);
  of("parts").count("part_size", "part_bytes", &Plan::part_bytes, "bytes");
  of("parts").count(
      "parts", "parts", [](const Plan& plan) { return plan.parts.size(); }, "");
  of("passes").number(
      "passes", "passes/total_seconds",
      [](const Plan& plan) { return plan.passes ? plan.passes->total_seconds() : 0; }, "seconds");
  of("parts").count("window", "window_parts", &Plan::window_parts, "");
  of("parts").text("stores", "stores", [](const Plan& plan) { return name_of(plan.stores); });
  // Offsets in different gradients have nothing to do with each other.
  if (before.gradient_bytes == after.gradient_bytes) {
    compare_assignment(out, before.parts, after.parts);
  }
  compare_quantities(out, before, after);
  compare_sources(out, before, after);
  if (!inputs_differ && !out.result().differences.empty()) {
    out.warn("both plans name the same profile, workload, roles and options: the planner itself "
             "changed between them, "
             "or a file was edited");
  }
  return std::move(out).finish();
}

} // namespace reckon
