// SPDX-License-Identifier: Apache-2.0
#include "compare/build.hpp"
#include "compare/quantity_unit.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace reckon {
namespace {

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
  const std::size_t common = std::min(before.ranks.size(), after.ranks.size());
  for (std::size_t i = 0; i < std::max(before.ranks.size(), after.ranks.size()); ++i) {
    const std::string path = fmt::format("ranks/{}", i);
    if (i >= common) {
      const auto side = [&](const Plan& plan) {
        return i < plan.ranks.size() ? text_side(fmt::format("{} on {}", role_of(plan.ranks[i]),
                                                             plan.ranks[i].machine))
                                     : Side{};
      };
      Difference d;
      d.kind = "rank";
      d.group = "ranks";
      d.where = path;
      d.before = side(before);
      d.after = side(after);
      out.compared();
      out.add(std::move(d));
      continue;
    }
    const PlanRank& a = before.ranks[i];
    const PlanRank& b = after.ranks[i];
    out.text("rank", "ranks", path + "/machine", a.machine, b.machine);
    out.text("rank", "ranks", path + "/rack", a.rack, b.rack);
    out.text("rank", "ranks", path + "/role", role_of(a), role_of(b));
    out.number("rank", "ranks", path + "/lanes", a.lanes, b.lanes, "");
    out.number("port", "ranks", path + "/port_bytes_per_second", a.port_bytes_per_second,
               b.port_bytes_per_second, "bytes_per_second");
    out.text("port", "ranks", path + "/lane_places", places_text(a), places_text(b));
    out.number("share", "ranks", path + "/share_bytes", a.share_bytes, b.share_bytes, "bytes");
    out.count("share", "ranks", path + "/assigned_bytes", a.assigned_bytes, b.assigned_bytes,
              "bytes");
    out.count("traffic", "ranks", path + "/egress_bytes", a.egress_bytes, b.egress_bytes, "bytes");
    out.count("traffic", "ranks", path + "/ingress_bytes", a.ingress_bytes, b.ingress_bytes,
              "bytes");
  }
}

/// Indices of the parts, by offset.
std::vector<std::size_t> by_offset(const Parts& parts) {
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto less = [&](std::size_t a, std::size_t b) {
    return parts.offset_bytes[a] < parts.offset_bytes[b];
  };
  // Most plans send the parts in the order in which they lie.
  if (!std::is_sorted(order.begin(), order.end(), less)) {
    std::stable_sort(order.begin(), order.end(), less);
  }
  return order;
}

struct Amount {
  std::uint64_t parts = 0, bytes = 0;
};

/// What of the gradient is summed elsewhere than before. The two plans may be cut differently, so
/// it is the bytes that are followed: `parts` counts the stretches that are one piece in both.
void compare_assignment(Builder& out, const Parts& before, const Parts& after) {
  const std::vector<std::size_t> a_order = by_offset(before);
  const std::vector<std::size_t> b_order = by_offset(after);
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
  const auto add = [&](std::string kind, std::string where, std::string from, std::string to,
                       const Amount& amount) {
    Difference d;
    d.kind = std::move(kind);
    d.group = "parts";
    d.where = std::move(where);
    d.before = text_side(std::move(from));
    d.after = text_side(std::move(to));
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

void compare_prediction(Builder& out, const std::string& group, const std::string& path,
                        const std::optional<Prediction>& before,
                        const std::optional<Prediction>& after) {
  const auto field = [](const std::optional<Prediction>& p, double Prediction::*member) {
    return p ? std::optional((*p).*member) : std::nullopt;
  };
  const auto seconds = [&](std::string_view kind, std::string_view name,
                           double Prediction::*member) {
    out.number(kind, group, fmt::format("{}/{}", path, name), field(before, member),
               field(after, member), "seconds", Better::lower);
  };
  seconds("bound", "bound_seconds", &Prediction::bound_seconds);
  seconds("time", "mid_seconds", &Prediction::mid_seconds);
  if (group == "prediction") { // of the others one number tells enough
    seconds("time", "lo_seconds", &Prediction::lo_seconds);
    seconds("time", "hi_seconds", &Prediction::hi_seconds);
  }
}

void compare_terms(Builder& out, const std::vector<Term>& before, const std::vector<Term>& after) {
  std::map<std::string, std::pair<std::optional<double>, std::optional<double>>> terms;
  for (const Term& t : before) {
    terms[t.name].first = terms[t.name].first.value_or(0) + t.seconds;
  }
  for (const Term& t : after) {
    terms[t.name].second = terms[t.name].second.value_or(0) + t.seconds;
  }
  for (const auto& [name, sides] : terms) {
    out.number("term", "prediction", "prediction/terms/" + name, sides.first, sides.second,
               "seconds", Better::lower);
  }
}

void compare_candidates(Builder& out, const Plan& before, const Plan& after) {
  std::map<std::string, std::pair<const Candidate*, const Candidate*>> all;
  for (const Candidate& c : before.candidates) {
    all[c.strategy].first = &c;
  }
  for (const Candidate& c : after.candidates) {
    all[c.strategy].second = &c;
  }
  for (const auto& [strategy, sides] : all) {
    const auto prediction = [](const Candidate* c) {
      return c != nullptr ? c->prediction : std::nullopt;
    };
    const auto a = prediction(sides.first);
    const auto b = prediction(sides.second);
    const std::string path = "candidates/" + strategy;
    // The chosen ones are compared in full already.
    if (strategy == before.strategy && strategy == after.strategy) {
      continue;
    }
    const auto state = [](const Candidate* c, const std::optional<Prediction>& p) -> std::string {
      return c == nullptr ? "not considered" : (p ? "applies" : "does not apply: " + c->reason);
    };
    if (a && b) {
      compare_prediction(out, "candidates", path, a, b);
    } else {
      out.text("candidate", "candidates", path, state(sides.first, a), state(sides.second, b));
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

/// By name; a name that comes again gets its number.
std::map<std::string, const Quantity*> by_name(const std::vector<Quantity>& quantities) {
  std::map<std::string, const Quantity*> out;
  std::map<std::string, int> seen;
  for (const Quantity& q : quantities) {
    if (is_source(q)) {
      continue;
    }
    const int n = ++seen[q.name];
    out.emplace(n == 1 ? q.name : fmt::format("{} #{}", q.name, n), &q);
  }
  return out;
}

void compare_quantities(Builder& out, const Plan& before, const Plan& after) {
  const auto a = by_name(before.quantities);
  const auto b = by_name(after.quantities);
  std::map<std::string, std::pair<const Quantity*, const Quantity*>> all;
  for (const auto& [name, q] : a) {
    all[name].first = q;
  }
  for (const auto& [name, q] : b) {
    all[name].second = q;
  }
  // An input that is itself solved here is no cause: its own inputs are.
  using InputChange = std::tuple<std::string, std::optional<double>, std::optional<double>>;
  std::map<InputChange, std::set<std::string>> inputs;
  for (const auto& [name, sides] : all) {
    const auto& [p, q] = sides;
    const std::string path = "quantities/" + name;
    const auto value = [](const Quantity* quantity) {
      return quantity != nullptr ? std::optional(quantity->value) : std::nullopt;
    };
    const std::string_view unit = unit_of_quantity((p != nullptr ? p : q)->name);
    out.number("value", "quantities", path, value(p), value(q), unit);
    if (p == nullptr || q == nullptr) {
      continue;
    }
    out.text("equation", "quantities", path + "/equation", p->equation, q->equation);
    std::set<std::string> names;
    for (const auto* quantity : {p, q}) {
      for (const auto& [input, number] : quantity->inputs) {
        static_cast<void>(number);
        names.insert(input);
      }
    }
    for (const std::string& input : names) {
      const auto at = [&](const Quantity* quantity) {
        const auto it = quantity->inputs.find(input);
        return it != quantity->inputs.end() ? std::optional(it->second) : std::nullopt;
      };
      const auto x = at(p);
      const auto y = at(q);
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
                   const std::string& member, const std::map<std::string, double>& before,
                   const std::map<std::string, double>& after, std::string_view unit,
                   Better better = Better::neither) {
  std::set<std::string> names;
  for (const auto* side : {&before, &after}) {
    for (const auto& [name, value] : *side) {
      static_cast<void>(value);
      names.insert(name);
    }
  }
  const auto at = [](const std::map<std::string, double>& side, const std::string& name) {
    const auto it = side.find(name);
    return it != side.end() ? std::optional(it->second) : std::nullopt;
  };
  for (const std::string& name : names) {
    out.number(kind, group, fmt::format("{}/{}/{}", group, name, member), at(before, name),
               at(after, name), unit, better);
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
  std::map<std::uint64_t, std::pair<const ProxyRoute*, const ProxyRoute*>> clients;
  for (const ProxyRoute& r : before.routing) {
    clients[r.client].first = &r;
  }
  for (const ProxyRoute& r : after.routing) {
    clients[r.client].second = &r;
  }
  for (const auto& [client, sides] : clients) {
    const ProxyRoute *const a = sides.first, *const b = sides.second;
    const std::string path = fmt::format("routing/{}/", client);
    const auto proxy = [&](const char* name, std::uint64_t ProxyRoute::*member) {
      const auto text = [&](const ProxyRoute* r) {
        return r != nullptr ? fmt::format("rank {}", r->*member) : std::string();
      };
      out.text("route", "routing", path + name, text(a), text(b));
    };
    proxy("latency_proxy", &ProxyRoute::latency_proxy);
    proxy("bandwidth_proxy", &ProxyRoute::bandwidth_proxy);
    out.number("threshold", "routing", path + "threshold_bytes",
               a != nullptr ? a->threshold_bytes : std::nullopt,
               b != nullptr ? b->threshold_bytes : std::nullopt, "bytes");
    const auto partition = [](const ProxyRoute* r) {
      return r != nullptr ? std::optional(r->partition_bytes) : std::nullopt;
    };
    out.number("part_size", "routing", path + "partition_bytes", partition(a), partition(b),
               "bytes");
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

  out.text("strategy", "prediction", "strategy", before.strategy, after.strategy);
  out.text("transport", "prediction", "transport", before.transport, after.transport);
  compare_prediction(out, "prediction", "prediction", before.prediction, after.prediction);
  out.text("bound_by", "prediction", "prediction/bound_by", before.prediction.bound_by,
           after.prediction.bound_by);
  compare_terms(out, before.prediction.terms, after.prediction.terms);
  out.number("gap", "prediction", "assignment_gap", before.assignment_gap, after.assignment_gap,
             "ratio", Better::lower);
  out.text("runner_up", "candidates", "runner_up", before.runner_up, after.runner_up);
  compare_candidates(out, before, after);

  out.count("gradient", "gradient", "gradient_bytes", before.gradient_bytes, after.gradient_bytes,
            "bytes");
  const auto runs_text = [](const Plan& plan) {
    std::vector<std::string> runs;
    for (const DTypeRun& r : plan.runs) {
      runs.push_back(fmt::format("{} at {} for {}", name_of(r.dtype), r.offset_bytes, r.bytes));
    }
    return fmt::format("{}", fmt::join(runs, ", "));
  };
  out.text("gradient", "gradient", "runs", runs_text(before), runs_text(after));
  compare_ranks(out, before, after);
  compare_trees(out, before, after);
  compare_routing(out, before, after);
  out.count("part_size", "parts", "part_bytes", before.part_bytes, after.part_bytes, "bytes");
  out.count("parts", "parts", "parts", before.parts.size(), after.parts.size(), "");
  out.number("passes", "passes", "passes/total_seconds",
             before.passes ? before.passes->total_seconds() : 0,
             after.passes ? after.passes->total_seconds() : 0, "seconds");
  out.count("window", "parts", "window_parts", before.window_parts, after.window_parts, "");
  out.text("stores", "parts", "stores", std::string(name_of(before.stores)),
           std::string(name_of(after.stores)));
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
