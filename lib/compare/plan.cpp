// SPDX-License-Identifier: Apache-2.0
#include "compare/facts.hpp"
#include "compare/quantity_unit.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace reckon {
namespace {

using NamedNumber = std::pair<const std::string, double>;

struct Amount {
  std::uint64_t parts = 0, bytes = 0;
};

/// What of the gradient is summed elsewhere than before. The two plans may be cut differently, so
/// it is the bytes that are followed: `parts` counts the stretches that are one piece in both.
void compare_assignment(Builder& out, const Parts& before, const Parts& after) {
  const std::vector<std::size_t> a_order = before.by_offset();
  const std::vector<std::size_t> b_order = after.by_offset();
  std::map<std::pair<std::uint64_t, std::uint64_t>, Amount> moved; // server -> server
  using Move = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  std::map<Move, Amount> moved_lane; // server; lane -> lane
  std::map<Move, Amount> moved_tree; // server; tree -> tree
  std::size_t i = 0;
  std::size_t j = 0;
  std::uint64_t cuts = 0; // ends of parts that are none of the other plan's
  while (i < a_order.size() && j < b_order.size()) {
    const std::size_t a = a_order[i];
    const std::size_t b = b_order[j];
    const std::uint64_t a_end = before.offset_bytes[a] + before.bytes[a];
    const std::uint64_t b_end = after.offset_bytes[b] + after.bytes[b];
    const std::uint64_t begin = std::max(before.offset_bytes[a], after.offset_bytes[b]);
    const std::uint64_t end = std::min(a_end, b_end);
    cuts += a_end != b_end ? 1 : 0;
    if (begin < end) {
      Amount* amount = nullptr;
      if (before.server[a] != after.server[b]) {
        amount = &moved[{before.server[a], after.server[b]}];
      } else if (before.lane[a] != after.lane[b]) {
        amount = &moved_lane[{before.server[a], before.lane[a], after.lane[b]}];
      } else if (!before.tree.empty() && !after.tree.empty() && before.tree[a] != after.tree[b]) {
        amount = &moved_tree[{before.server[a], before.tree[a], after.tree[b]}];
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
  for (const auto& [kind, moves] : {std::pair("lane", &moved_lane), {"tree", &moved_tree}}) {
    for (const auto& [key, amount] : *moves) {
      const auto& [server, from, to] = key;
      add(kind, fmt::format("parts/{} of rank {}", kind, server), fmt::format("{} {}", kind, from),
          fmt::format("{} {}", kind, to), amount);
    }
  }
  if (cuts > 0) {
    const auto text = [](const Parts& parts, const std::vector<std::size_t>& order) {
      return text_side(fmt::format("{} first", parts.bytes[order[0]]));
    };
    Difference d =
        difference("cut", "parts", "parts/bytes", text(before, a_order), text(after, b_order));
    d.note = fmt::format("{} ends of parts moved to other places", cuts);
    out.add(std::move(d));
  } else if (before.size() == after.size()) {
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
    const auto value_of = [](const Quantity* quantity) {
      return quantity != nullptr ? std::optional(quantity->value) : std::nullopt;
    };
    const std::string where = "quantities/" + name;
    out.number("value", "quantities", where, value_of(p), value_of(q),
               unit_of_quantity((p != nullptr ? p : q)->name));
    if (p == nullptr || q == nullptr) {
      continue;
    }
    out.text("equation", "quantities", where + "/equation", p->equation, q->equation);
    for (const auto& [input, numbers] : paired(p->inputs, q->inputs, &NamedNumber::first)) {
      const auto value = [](const NamedNumber* named) {
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

/// How much goes which way inside a machine.
void compare_shares(Builder& out, const Plan& before, const Plan& after) {
  const auto shares = [](const Plan& plan) {
    std::map<std::string, double> by_scheme;
    for (const SumTree& tree : plan.trees) {
      by_scheme[tree.scheme] += tree.share;
    }
    return by_scheme;
  };
  const std::map<std::string, double> a = shares(before), b = shares(after);
  for (const auto& [scheme, sides] : paired(a, b, &NamedNumber::first)) {
    const auto share = [](const NamedNumber* named) {
      return named != nullptr ? std::optional(named->second) : std::nullopt;
    };
    out.number("share", "trees", fmt::format("trees/{}/share", scheme), share(sides.first),
               share(sides.second), "ratio");
  }
}

/// The options of a plan, with what holds for those that the other one names and it does not: the
/// planner leaves out what was not asked for.
std::map<std::string, std::string> options_beside(const Plan& plan, const Plan& other) {
  const std::map<std::string, std::string> unasked{
      {"collective", "all-reduce"},
      {k_gpu_direct, plan.options.contains("inside") ? "no" : "yes"},
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
  for (const auto& [name, value] : unasked) {
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

  compare_all_facts(out, before, after);
  compare_shares(out, before, after);
  out.count("parts", "parts", "parts", static_cast<double>(before.parts.size()),
            static_cast<double>(after.parts.size()), "");
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
