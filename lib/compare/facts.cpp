// SPDX-License-Identifier: Apache-2.0
#include "compare/facts.hpp"

#include "compare/quantity_unit.hpp"
#include "documents/describe.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

namespace reckon {
namespace {

using documents::Field;
using documents::ListRef;
using documents::Numbers;
using documents::OptionalRef;
using documents::RecordRef;
using documents::Ref;
using documents::Rule;
using documents::Texts;
using documents::Visitor;
using documents::WholeRef;
using enum FactRule::Use;

constexpr const char* k_every_time = "it differs each time";
constexpr const char* k_words = "it repeats figures in words";
constexpr const char* k_digest = "the digest identifies the document";
constexpr const char* k_shown = "shown if the measured or the predicted time differs";
constexpr const char* k_chosen =
    "the probe chooses how many writes are in flight and, between machines, how long the writes of "
    "a rate are: cells that differ only in this are compared";
constexpr const char* k_label = "a name only";
constexpr const char* k_untested = "a run keeps one value: no test distinguishes it from noise";
constexpr const char* k_others = "of other strategies, predicted time and bound are compared";
constexpr const char* k_follows = "follows from the parts and the capacities, which are compared";
constexpr const char* k_plans = "part of the plan: compare the plans";
constexpr const char* k_samples = "follows from the samples, which are compared";

constexpr FactRule k_rules[] = {
    {"profile", "name", never, k_label},
    {"profile", "source", own, ""},
    {"profile", "context", own, ""},
    {"profile", "settings", own, ""},
    {"profile", "settings/*/file", never, "the source of a value"},
    {"profile", "context/disturbed", never, k_every_time},
    {"profile", "context/drift", never, k_every_time},
    {"profile", "context/measured_at", never, k_every_time},
    {"profile", "context/seed", never, k_every_time},
    {"profile", "context/took", never, k_every_time},
    {"profile", "fingerprint", never,
     "a digest of the processor's name and the topology, which are compared; with the hosts it "
     "identifies the machines"},
    {"profile", "machines/*/name", never,
     "identifies the machine; a group's is made from its members'"},
    {"profile", "machines/*/count", own, ""},
    {"profile", "machines/*/members", own, ""},
    {"profile", "topology/objects/*/os_index", never,
     "the system's numbers differ among the machines of a group; parts are identified by their "
     "ids"},
    {"profile", "topology/objects/*/cpus", never,
     "the system's numbers differ among the machines of a group; their count is compared"},
    {"profile", "endpoint/configurations/*/source", never, "the source of figures"},
    {"profile", "endpoint/sources", never, "the source of figures"},
    {"profile", "cells", own, ""},
    {"profile", "cells/*/status", never,
     "ok and noisy count as the same: noise is not a property of the machine. Any other change is "
     "a difference"},
    {"profile", "cells/*/in_flight", never, k_chosen},
    {"profile", "cells/*/bytes", never, k_chosen},
    {"profile", "cells/*/reason", never, "explains why a cell is noisy or has no value"},
    {"profile", "cells/*/n", never, k_samples},
    {"profile", "cells/*/min", never, k_samples},
    {"profile", "cells/*/p99", never, k_samples},
    {"profile", "cells/*/max", never, k_samples},
    {"profile", "cells/*/spread", never, k_samples},
    {"profile", "cells/*/ceiling", never, "follows from other cells and the topology"},
    {"profile", "fits", never, "follow from the cells"},

    {"workload", "name", never, k_label},
    {"workload", "description", never, k_label},
    {"workload", "provenance", never, "the source of the list"},
    {"workload", "dtype", own, ""},
    {"workload", "tensors", own, ""},
    {"workload", "all_to_all", own, ""},
    {"workload", "forward_seconds", grouped, "times"},
    {"workload", "backward_seconds", grouped, "times"},
    {"workload", "batch", grouped, "layers"},
    {"workload", "threads", grouped, "batch"},

    {"roles", "name", never, k_label},

    {"plan", "profile", own, ""},
    {"plan", "profile/name", never, k_digest},
    {"plan", "profile/file", never, k_digest},
    {"plan", "workload", own, ""},
    {"plan", "workload/name", never, k_digest},
    {"plan", "workload/file", never, k_digest},
    {"plan", "roles", own, ""},
    {"plan", "roles/name", never, k_digest},
    {"plan", "roles/file", never, k_digest},
    {"plan", "options", own, ""},
    {"plan", "strategy", grouped, "prediction"},
    {"plan", "transport", grouped, "prediction"},
    {"plan", "rehearsal", never, "part of the profile"},
    {"plan", "measured_on", never, "part of the profile"},
    {"plan", "prediction/relief", never, k_words},
    {"plan", "prediction/busiest_by", never, k_words},
    {"plan", "switch_sums", grouped, "prediction"},
    {"plan", "switch_sums/by", never, k_words},
    {"plan", "assumed", never, k_words},
    {"plan", "assignment_gap", grouped, "prediction"},
    {"plan", "runner_up", grouped, "candidates"},
    {"plan", "margin", grouped, "candidates"},
    {"plan", "margin_text", never, k_words},
    {"plan", "candidates/*/prediction/lo_seconds", never, k_others},
    {"plan", "candidates/*/prediction/hi_seconds", never, k_others},
    {"plan", "candidates/*/prediction/bound_by", never, k_others},
    {"plan", "candidates/*/prediction/terms", never, k_others},
    {"plan", "candidates/*/prediction/relief", never, k_others},
    {"plan", "candidates/*/prediction/busiest_seconds", never, k_others},
    {"plan", "candidates/*/prediction/busiest_by", never, k_others},
    {"plan", "gradient_bytes", grouped, "gradient"},
    {"plan", "runs", grouped, "gradient"},
    {"plan", "wire", grouped, "gradient"},
    {"plan", "part_bytes", grouped, "parts"},
    {"plan", "window_parts", grouped, "parts"},
    {"plan", "stores", grouped, "parts"},
    {"plan", "sums", grouped, "parts"},
    {"plan", "ring_order", grouped, "parts"},
    {"plan", "groups", grouped, "parts"},
    {"plan", "parts", own, ""},
    {"plan", "queues", grouped, "routing"},
    {"plan", "trees/*/share", own, ""},
    {"plan", "resources/*/load_bytes", never, k_follows},
    {"plan", "resources/*/busy", never, k_follows},
    {"plan", "resources/*/price", never, k_follows},
    {"plan", "resources/*/gain_per_gb_s", never, k_follows},
    {"plan", "quantities", own, ""},
    {"plan", "tensors/*/first_part", never, "follows from the order and the length of parts"},
    {"plan", "tensors/*/parts", never, "follows from the order and the length of parts"},

    {"report", "plan", own, ""},
    {"report", "plan/name", never, k_digest},
    {"report", "plan/file", never, k_digest},
    {"report", "profile", own, ""},
    {"report", "profile/name", never, k_digest},
    {"report", "profile/file", never, k_digest},
    {"report", "workload", own, ""},
    {"report", "workload/name", never, k_digest},
    {"report", "workload/file", never, k_digest},
    {"report", "context", own, ""},
    {"report", "context/measured at", never, k_every_time},
    {"report", "context/measured_at", never, k_every_time},
    {"report", "context/seed", never, k_every_time},
    {"report", "context/took", never, k_every_time},
    {"report", "kind", grouped, "run"},
    {"report", "strategy", grouped, "run"},
    {"report", "transport", grouped, "run"},
    {"report", "tolerance", grouped, "error"},
    {"report", "iteration_seconds", own, ""},
    {"report", "warm_up_iterations", never, "warm-up iterations do not count"},
    {"report", "min_seconds", never, k_samples},
    {"report", "p50_seconds", own, ""},
    {"report", "p99_seconds", never, k_samples},
    {"report", "spread", never, k_samples},
    {"report", "prediction", grouped, "predicted"},
    {"report", "prediction/lo_seconds", never, k_plans},
    {"report", "prediction/hi_seconds", never, k_plans},
    {"report", "prediction/bound_by", never, k_plans},
    {"report", "prediction/terms", never, k_plans},
    {"report", "prediction/relief", never, k_plans},
    {"report", "prediction/busiest_seconds", never, k_plans},
    {"report", "prediction/busiest_by", never, k_plans},
    {"report", "error", never, k_shown},
    {"report", "cause", never, k_shown},
    {"report", "other_links", never, "follows from the transport and the hosts"},
    {"report", "within_tolerance", never, k_shown},
    {"report", "goodput_over_bound", never, "follows from the bound and the measured time"},
    {"report", "stages/*/predicted_seconds", grouped, "predicted"},
    {"report", "stages/*/measured_seconds", never, k_shown},
    {"report", "stages/*/how", never, k_words},
    {"report", "ranks/*/host", never, "the context has the hosts"},
    {"report", "ranks/*/busy_seconds", never, k_untested},
    {"report", "ranks/*/reduce_seconds", never, k_untested},
    {"report", "ranks/*/wait_seconds", never, k_untested},
    {"report", "ranks/*/total_seconds", never, k_untested},
    {"report", "ranks/*/peer_wait_seconds", never, k_untested},
    {"report", "ranks/*/cpu_seconds", never, k_untested},
    {"report", "verification", own, ""},
    {"report", "verification/wrong_elements", never, "only right or wrong counts"},
    {"report", "verification/first_error", never, "only right or wrong counts"},
    {"report", "verification/checked_bytes", never,
     "depends on the number of iterations; only 0 is a difference"},
    {"report", "verification/max_error", never, k_untested},
    {"report", "verification/error_bound", never, "follows from the plan"},
    {"report", "verification/wire_error", never, "follows from the plan"},
    {"report", "emulation/profile", own, ""},
    {"report", "emulation/profile/name", never, k_digest},
    {"report", "emulation/profile/file", never, k_digest},
    {"report", "emulation/writes", never, k_untested},
    {"report", "emulation/late_writes", never, k_untested},
    {"report", "emulation/worst_late_seconds", never, k_untested},
    {"report", "diagnosis", never, k_words},
    {"report", "disturbed", never, "a property of the machine, not of the run"},
    {"report", "machine_now", never, "a property of the machine, not of the run"},
    {"report", "simulation/profile", own, ""},
    {"report", "simulation/profile/name", never, k_digest},
    {"report", "simulation/profile/file", never, k_digest},
    {"report", "simulation/settings", own, ""},
    {"report", "simulation/scenarios", grouped, "run"},
    {"report", "simulation/undisturbed_seconds", grouped, "simulated"},
    {"report", "simulation/stations", never, "follows from the plan and the simulated profile"},
    {"report", "checkpoints/complete", never, "depends on the number of iterations"},
    {"report", "checkpoints/skipped", never, "depends on the number of iterations"},
    {"report", "checkpoints/predicted_seconds", grouped, "predicted"},
    {"report", "checkpoints/saving_seconds", never, k_untested},
    {"report", "checkpoints/writing_seconds", never, k_untested},
    {"report", "checkpoints/usual_seconds", never, k_untested},
    {"report", "checkpoints/write_seconds", never, k_untested},
    {"report", "parameters/resumed_from_step", grouped, "run"},
    {"report", "reprofiling/pauses", own, ""},
    {"report", "reprofiling/pauses/*/after_iterations", never, k_untested},
    {"report", "reprofiling/pauses/*/measuring_seconds", never, k_untested},
    {"report", "reprofiling/pauses/*/planning_seconds", never, k_untested},
    {"report", "reprofiling/pauses/*/pairs", never, k_untested},
    {"report", "reprofiling/pauses/*/ports", never, k_untested},
    {"report", "reprofiling/pauses/*/verdict", never, k_words},
    {"report", "reprofiling/pauses/*/replan/plan", never, "follows from the changes"},
    {"report", "reprofiling/pauses/*/replan/profile", never, "follows from the changes"},
    {"report", "reprofiling/pauses/*/replan/running_predicted_seconds", never, k_untested},
    {"report", "reprofiling/pauses/*/replan/predicted_seconds", never, k_untested},
    {"report", "reprofiling/pauses/*/replan/before_seconds", never, k_untested},
    {"report", "reprofiling/pauses/*/replan/after_seconds", never, k_untested},
    {"report", "reprofiling/pauses/*/replan/gain", never, k_untested},
    {"report", "reprofiling/pauses/*/replan/iteration_seconds", never, k_untested},
};

std::string joined(const std::string& path, std::string_view step) {
  return path.empty() ? std::string(step) : fmt::format("{}/{}", path, step);
}

std::string_view last_step(std::string_view path) {
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

/// What the elements of a list are known by, the first that an element has.
constexpr std::array<std::string_view, 5> k_identities{"id", "strategy", "scheme", "client",
                                                       "name"};

/// Takes what an element is known by out of it. Empty: its number.
std::string take_identity(Fact& element) {
  const auto text = [&](std::string_view key) {
    const Fact* const fact = element.find(key);
    return fact == nullptr      ? std::string()
           : fact->value.number ? fmt::format("{}", *fact->value.number)
                                : fact->value.text;
  };
  const auto drop = [&](std::string_view key) {
    std::erase_if(element.members, [&](const auto& member) { return member.name == key; });
  };
  if (element.find("from") != nullptr && element.find("kind") != nullptr) { // a peer link
    std::string name = fmt::format("{} {} - {}", text("kind"), text("from"), text("to"));
    for (const char* key : {"kind", "from", "to"}) {
      drop(key);
    }
    return name;
  }
  for (const std::string_view key : k_identities) {
    if (std::string name = text(key); !name.empty()) {
      drop(key);
      return name;
    }
  }
  return "";
}

/// What a thing is, where it stands on one side only: "gpu Tesla V100".
std::string said_of(const Fact& thing) {
  std::string text;
  for (const char* key : {"kind", "machine", "name"}) {
    const Fact* const fact = thing.find(key);
    if (fact != nullptr && !fact->value.text.empty()) {
      text += (text.empty() ? "" : " ") + fact->value.text;
    }
  }
  return text.empty() ? "there" : text;
}

class Collector : public Visitor {
public:
  Collector(std::string_view kind, std::string place) : m_kind(kind), m_place(std::move(place)) {}
  std::vector<Fact::Member> members;

protected:
  void field(const Field& field, const Ref& ref) override {
    const std::string place = joined(m_place, field.key);
    const FactRule* const rule = fact_rule(m_kind, place);
    // What has code of its own is not collected, unless it stands among elements: machines.
    const bool skipped = rule != nullptr && rule->use != grouped && rule->where == place;
    const bool absent = field.rule.presence == Rule::Presence::given && !field.rule.written;
    if (skipped || absent) {
      return;
    }
    Fact fact = of(field, ref, place);
    if (field.rule.presence == Rule::Presence::maybe && fact.value.number == 0.0) {
      fact.value = {};
    }
    members.push_back({field.key, std::move(fact)});
  }

private:
  Fact of(const Field& field, const Ref& ref, const std::string& place) {
    return std::visit([&](const auto& to) { return fact_of(field, to, place); }, ref.to);
  }
  static std::string_view unit_of(const Field& field) {
    constexpr std::array<std::string_view, 5> k_ratios{"assignment_gap", "margin", "busy",
                                                       "link_efficiency", "tolerance"};
    return std::find(k_ratios.begin(), k_ratios.end(), field.key) != k_ratios.end()
               ? "ratio"
               : unit_of_quantity(field.key);
  }
  Fact fact_of(const Field& field, const WholeRef& to, const std::string& /*place*/) const {
    const std::int64_t number = to.get(to.value);
    Fact fact;
    if (!field.rule.names.empty()) {
      fact.value.text = field.rule.names[static_cast<std::size_t>(number)];
    } else if (std::string_view(field.key).ends_with("_proxy")) {
      fact.value.text = fmt::format("rank {}", number);
    } else if (to.truth) {
      fact.value.text = number != 0 ? "yes" : "no";
    } else {
      fact.value = number_side(static_cast<double>(number), unit_of(field));
      fact.whole = true;
    }
    return fact;
  }
  Fact fact_of(const Field& field, const double* to, const std::string& /*place*/) const {
    Fact fact;
    fact.value = number_side(*to, unit_of(field));
    return fact;
  }
  Fact fact_of(const Field& /*field*/, const std::string* to, const std::string& /*place*/) const {
    Fact fact;
    fact.value = text_side(*to);
    return fact;
  }
  Fact fact_of(const Field& field, const Texts* to, const std::string& place) const {
    Fact fact;
    for (const auto& [key, text] : *to) {
      fact.members.push_back({key, fact_of(field, &text, place)});
    }
    return fact;
  }
  Fact fact_of(const Field& field, const Numbers* to, const std::string& place) const {
    Fact fact;
    for (const auto& [key, number] : *to) {
      fact.members.push_back({key, fact_of(field, &number, place)});
    }
    return fact;
  }
  template <class T>
  Fact fact_of(const Field& /*field*/, const std::vector<T>* to,
               const std::string& /*place*/) const {
    Fact fact;
    fact.column.assign(to->begin(), to->end());
    return fact;
  }
  Fact fact_of(const Field& field, const OptionalRef& to, const std::string& place) {
    if (!to.has(to.value)) {
      return {};
    }
    const Ref inside = to.get(to.value);
    Fact fact = of(field, inside, place);
    fact.thing = std::holds_alternative<RecordRef>(inside.to);
    return fact;
  }
  Fact fact_of(const Field& field, const ListRef& to, const std::string& place) {
    Fact list;
    list.list = true;
    std::map<std::string, int> seen;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < to.size(to.list); ++i) {
      const Ref element = to.at(to.list, i);
      if (const auto* const whole = std::get_if<WholeRef>(&element.to)) {
        list.column.push_back(static_cast<double>(whole->get(whole->value)));
        continue;
      }
      if (const auto* const text = std::get_if<std::string*>(&element.to)) {
        texts.push_back(**text);
        continue;
      }
      Fact fact = of(field, element, joined(place, "*"));
      std::string name = take_identity(fact);
      const int times = ++seen[name];
      name = name.empty() ? fmt::format("{}", i)
                          : (times > 1 ? fmt::format("{} #{}", name, times) : name);
      fact.thing = true;
      list.members.push_back({std::move(name), std::move(fact)});
    }
    if (!texts.empty()) {
      list.value = text_side(fmt::format("{}", fmt::join(texts, ", ")));
    }
    return list;
  }
  Fact fact_of(const Field& /*field*/, const RecordRef& to, const std::string& place) const {
    Collector collector(m_kind, place);
    to.describe(collector, to.record);
    Fact record;
    record.members = std::move(collector.members);
    return record;
  }

  std::string_view m_kind;
  std::string m_place;
};

template <class T>
constexpr std::string_view k_kind_of = "";
template <>
constexpr std::string_view k_kind_of<Profile> = "profile";
template <>
constexpr std::string_view k_kind_of<Workload> = "workload";
template <>
constexpr std::string_view k_kind_of<Roles> = "roles";
template <>
constexpr std::string_view k_kind_of<Plan> = "plan";
template <>
constexpr std::string_view k_kind_of<Report> = "report";

/// Only of machines more is better, and of plans a shorter predicted time.
Better better_of(std::string_view kind, std::string_view place) {
  const std::string_view key = last_step(place);
  if (kind == "plan") {
    return place == "prediction/mid_seconds" ? Better::lower : Better::neither;
  }
  const bool machine = kind == "profile" && !place.starts_with("endpoint");
  const bool amount = key.ends_with("per_second") || key.ends_with("bytes") || key == "width" ||
                      key == "count" || key == "cores" || key == "processors";
  return machine && amount ? Better::higher : Better::neither;
}

std::string group_of(std::string_view kind, const std::string& place) {
  const FactRule* const rule = fact_rule(kind, place);
  return rule != nullptr && rule->use == grouped ? std::string(rule->text)
                                                 : place.substr(0, place.find('/'));
}

void compare_columns(Builder& out, const std::string& group, const std::string& path,
                     const std::vector<double>& before, const std::vector<double>& after) {
  const auto differs = [&](std::size_t i) {
    return i >= before.size() || i >= after.size() ||
           beyond(before[i], after[i], out.options().exact_tolerance);
  };
  const std::size_t most = std::max(before.size(), after.size());
  std::size_t first = most, count = 0;
  for (std::size_t i = most; i-- > 0;) {
    if (differs(i)) {
      first = i;
      ++count;
    }
  }
  out.compared();
  if (count == 0) {
    return;
  }
  const auto side = [](const std::vector<double>& column) {
    constexpr std::size_t k_few = 8;
    return text_side(column.empty()           ? ""
                     : column.size() <= k_few ? fmt::format("{}", fmt::join(column, " "))
                                              : fmt::format("{} numbers", column.size()));
  };
  Difference d = difference("fact", group, path, side(before), side(after));
  d.note = fmt::format("{} of {} differ, from number {} on", count, most, first);
  out.add(std::move(d));
}

void compare_leaf(Builder& out, const std::string& place, const std::string& group,
                  const std::string& path, const Fact& before, const Fact& after) {
  const Side &a = before.value, &b = after.value;
  const std::string_view kind = out.result().kind;
  const std::string name = place.find("prediction/terms/") == 0 ? "term" : "fact";
  if (!a.number && !b.number) {
    if (!a.absent() || !b.absent()) {
      out.text(name, group, path, a.text, b.text);
    }
    return;
  }
  const std::string_view unit = a.number ? a.unit : b.unit;
  if (before.whole && after.whole && a.number && b.number) {
    out.count(name, group, path, *a.number, *b.number, unit, better_of(kind, place));
  } else {
    out.number(name, group, path, a.number, b.number, unit, better_of(kind, place));
  }
}

} // namespace

const Fact* Fact::find(std::string_view name) const {
  const auto it = std::find_if(members.begin(), members.end(),
                               [&](const auto& member) { return member.name == name; });
  return it == members.end() ? nullptr : &it->fact;
}

std::span<const FactRule> fact_rules() {
  return k_rules;
}

const FactRule* fact_rule(std::string_view kind, std::string_view where) {
  static const auto k_by_place = [] {
    std::unordered_map<std::string, const FactRule*> all;
    for (const FactRule& rule : k_rules) {
      all[fmt::format("{} {}", rule.kind, rule.where)] = &rule;
    }
    return all;
  }();
  std::string key(kind);
  key += ' ';
  key += where;
  for (;;) {
    if (const auto it = k_by_place.find(key); it != k_by_place.end()) {
      return it->second;
    }
    const std::size_t slash = key.rfind('/');
    if (slash == std::string::npos) {
      return nullptr;
    }
    key.resize(slash);
  }
}

template <class T>
Fact facts_of(const T& document) {
  Collector collector(k_kind_of<T>, "");
  describe(collector, const_cast<T&>(document)); // collecting changes nothing
  Fact all;
  all.members = std::move(collector.members);
  return all;
}
template Fact facts_of(const Profile&);
template Fact facts_of(const Workload&);
template Fact facts_of(const Roles&);
template Fact facts_of(const Plan&);
template Fact facts_of(const Report&);

void compare_facts(Builder& out, const std::string& place, const std::string& path,
                   const Fact* before, const Fact* after) {
  static const Fact k_nothing;
  const Fact& a = before != nullptr ? *before : k_nothing;
  const Fact& b = after != nullptr ? *after : k_nothing;
  const bool leaf = a.members.empty() && b.members.empty();
  if (leaf && a.thing == b.thing && a.value == b.value && a.column == b.column) {
    out.compared(a.value.absent() && a.column.empty() ? 0 : 1); // nearly all of them
    return;
  }
  const std::string group = group_of(out.result().kind, place);
  if (a.thing != b.thing) {
    const auto side = [](const Fact& fact) { return text_side(fact.thing ? said_of(fact) : ""); };
    Difference d = difference("fact", group, path, side(a), side(b));
    if (place.starts_with("topology/") || place.starts_with("machines/")) {
      d.effect = a.thing ? Effect::worse : Effect::better;
    }
    out.compared();
    out.add(std::move(d));
    return;
  }
  compare_leaf(out, place, group, path, a, b);
  if (!a.column.empty() || !b.column.empty()) {
    compare_columns(out, group, path, a.column, b.column);
  }
  if (leaf) {
    return;
  }
  std::unordered_map<std::string_view, const Fact*> others;
  for (const auto& [name, fact] : b.members) {
    others[name] = &fact;
  }
  const bool list = a.list || b.list;
  const auto compare = [&](const std::string& name, const Fact* x, const Fact* y) {
    compare_facts(out, joined(place, list ? "*" : name), joined(path, name), x, y);
  };
  for (const auto& [name, fact] : a.members) {
    const auto it = others.find(name);
    compare(name, &fact, it == others.end() ? nullptr : it->second);
    if (it != others.end()) {
      others.erase(it);
    }
  }
  for (const auto& [name, fact] : b.members) {
    if (others.contains(name)) {
      compare(name, nullptr, &fact);
    }
  }
}

} // namespace reckon
