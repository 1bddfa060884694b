// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"

#include "compare/build.hpp"
#include "core/error.hpp"
#include "core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace reckon {
namespace {

std::string_view name_of(Effect effect) {
  switch (effect) {
  case Effect::better:
    return "better";
  case Effect::worse:
    return "worse";
  case Effect::neutral:
    break;
  }
  return "neutral";
}

Json side_json(const Side& side) {
  if (side.absent()) {
    return nullptr;
  }
  Json out = Json::object();
  if (side.number) {
    out["value"] = finite_or_null(*side.number);
  }
  if (!side.text.empty()) {
    out["text"] = side.text;
  }
  if (!side.unit.empty()) {
    out["unit"] = side.unit;
  }
  return out;
}

Json difference_json(const Difference& d) {
  Json out{{"kind", d.kind},
           {"group", d.group},
           {"where", d.where},
           {"before", side_json(d.before)},
           {"after", side_json(d.after)},
           {"change", d.change ? finite_or_null(*d.change) : Json(nullptr)},
           {"effect", name_of(d.effect)},
           {"counts", d.counts}};
  if (d.p_value) {
    out["p_value"] = *d.p_value;
  }
  if (d.parts > 0 || d.bytes > 0) {
    out["parts"] = d.parts;
    out["bytes"] = d.bytes;
  }
  if (!d.note.empty()) {
    out["note"] = d.note;
  }
  return out;
}

std::optional<std::string> digest_text(const std::optional<DocumentLink>& link) {
  return link ? std::optional(link->digest) : std::nullopt;
}

} // namespace

bool Comparison::same() const {
  return std::none_of(differences.begin(), differences.end(),
                      [](const Difference& d) { return d.counts; });
}

Comparison compare(const Document& before, const Document& after, const CompareOptions& options) {
  if (before.index() != after.index()) {
    fail(ErrorKind::input,
         fmt::format("cannot compare a {} with a {}; give two documents of one kind",
                     kind_of(before), kind_of(after)));
  }
  return std::visit(
      [&](const auto& a) {
        return compare(a, std::get<std::decay_t<decltype(a)>>(after), options);
      },
      before);
}

Json to_json(const Comparison& comparison) {
  Json out{{"schema", "comparison"},          {"schema_version", k_schema_version},
           {"kind", comparison.kind},         {"same", comparison.same()},
           {"compared", comparison.compared}, {"differences", Json::array()},
           {"undecided", Json::array()},      {"causes", Json::array()},
           {"warnings", comparison.warnings}};
  for (const Difference& d : comparison.differences) {
    out["differences"].push_back(difference_json(d));
  }
  for (const Difference& d : comparison.undecided) {
    out["undecided"].push_back(difference_json(d));
  }
  for (const Cause& c : comparison.causes) {
    out["causes"].push_back(
        {{"what", c.what}, {"before", side_json(c.before)}, {"after", side_json(c.after)}});
  }
  return out;
}

bool beyond(double a, double b, double tolerance) {
  constexpr double k_floor = 1e-15;
  return std::abs(a - b) > std::max(tolerance * std::min(std::abs(a), std::abs(b)), k_floor);
}

std::optional<double> relative_change(double before, double after) {
  return before == 0 ? std::nullopt : std::optional(after / before - 1);
}

Effect effect_of(double before, double after, Better better) {
  if (better == Better::neither || before == after) {
    return Effect::neutral;
  }
  return (after < before) == (better == Better::lower) ? Effect::better : Effect::worse;
}

Side text_side(std::string text) {
  return {std::move(text), std::nullopt, ""};
}
Side number_side(double number, std::string_view unit) {
  return {"", number, std::string(unit)};
}

void Builder::text(std::string_view kind, std::string_view group, std::string_view where,
                   const std::string& before, const std::string& after) {
  compared();
  if (before != after) {
    Difference d;
    d.kind = kind;
    d.group = group;
    d.where = where;
    d.before = text_side(before);
    d.after = text_side(after);
    add(std::move(d));
  }
}

void Builder::number(std::string_view kind, std::string_view group, std::string_view where,
                     double before, double after, std::string_view unit, Better better) {
  number(kind, group, where, std::optional(before), std::optional(after), unit, better);
}

void Builder::number(std::string_view kind, std::string_view group, std::string_view where,
                     std::optional<double> before, std::optional<double> after,
                     std::string_view unit, Better better) {
  if (!before && !after) {
    return;
  }
  compared();
  if (before && after && !beyond(*before, *after, m_options.exact_tolerance)) {
    return;
  }
  Difference d;
  d.kind = kind;
  d.group = group;
  d.where = where;
  d.before = before ? number_side(*before, unit) : Side{};
  d.after = after ? number_side(*after, unit) : Side{};
  if (before && after) {
    d.change = relative_change(*before, *after);
    d.effect = effect_of(*before, *after, better);
  }
  add(std::move(d));
}

void Builder::count(std::string_view kind, std::string_view group, std::string_view where,
                    std::uint64_t before, std::uint64_t after, std::string_view unit) {
  compared();
  if (before == after) {
    return;
  }
  Difference d;
  d.kind = kind;
  d.group = group;
  d.where = where;
  d.before = number_side(static_cast<double>(before), unit);
  d.after = number_side(static_cast<double>(after), unit);
  d.change = relative_change(*d.before.number, *d.after.number);
  add(std::move(d));
}

void Builder::cause(std::string what, Side before, Side after) {
  m_result.causes.push_back({std::move(what), std::move(before), std::move(after)});
}

void Builder::causes_from(std::string_view prefix, const std::map<std::string, std::string>& before,
                          const std::map<std::string, std::string>& after,
                          const std::set<std::string>& ignored) {
  std::map<std::string, std::pair<Side, Side>> all;
  for (const auto& [key, value] : before) {
    all[key].first = text_side(value);
  }
  for (const auto& [key, value] : after) {
    all[key].second = text_side(value);
  }
  for (const auto& [key, sides] : all) {
    if (sides.first != sides.second && !ignored.contains(key)) {
      cause(fmt::format("{} {}", prefix, key), sides.first, sides.second);
    }
  }
}

void Builder::link(std::string_view what, const std::optional<DocumentLink>& before,
                   const std::optional<DocumentLink>& after) {
  const auto a = digest_text(before);
  const auto b = digest_text(after);
  if (a == b) {
    return;
  }
  const auto side = [](const std::optional<DocumentLink>& link) {
    return link ? text_side(fmt::format("{} {}", link->name, link->digest)) : Side{};
  };
  cause(std::string(what), side(before), side(after));
}

Comparison Builder::finish() && {
  for (Difference& d : m_result.differences) {
    d.counts = !m_options.only_worse || d.effect == Effect::worse;
  }
  for (Difference& d : m_result.undecided) {
    d.counts = false;
  }
  return std::move(m_result);
}

} // namespace reckon
