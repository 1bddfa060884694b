// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"

#include "compare/facts.hpp"
#include "core/error.hpp"
#include "core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace reckon {
namespace {

using NamedText = std::pair<const std::string, std::string>;

const char* name_of(Effect effect) {
  return effect == Effect::neutral ? "neutral" : effect == Effect::better ? "better" : "worse";
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
  if (!d.places.empty()) {
    out["places"] = d.places;
  }
  if (!d.follows_from.empty()) {
    out["follows_from"] = d.follows_from;
  }
  return out;
}

/// after / before - 1.
std::optional<double> relative_change(double before, double after) {
  return before == 0 ? std::nullopt : std::optional(after / before - 1);
}

Effect effect_of(double before, double after, Better better) {
  if (better == Better::neither || before == after) {
    return Effect::neutral;
  }
  return (after < before) == (better == Better::lower) ? Effect::better : Effect::worse;
}

std::optional<std::string> digest_text(const std::optional<DocumentLink>& link) {
  return link ? std::optional(link->digest) : std::nullopt;
}

} // namespace

bool Comparison::same() const {
  return std::none_of(differences.begin(), differences.end(),
                      [](const Difference& d) { return d.counts; }) &&
         (!strict || (undecided.empty() && only_before.empty()));
}

Comparison compare(const Document& before, const Document& after, const CompareOptions& options) {
  if (before.index() != after.index()) {
    fail(ErrorKind::input,
         fmt::format("cannot compare a {} with a {}; give two documents of the same kind",
                     kind_of(before), kind_of(after)));
  }
  return std::visit(
      [&](const auto& a) {
        return compare(a, std::get<std::decay_t<decltype(a)>>(after), options);
      },
      before);
}

Json to_json(const Comparison& comparison) {
  Json out{{"schema", "comparison"},
           {"schema_version", k_schema_version},
           {"kind", comparison.kind},
           {"same", comparison.same()},
           {"compared", comparison.compared},
           {"differences", Json::array()},
           {"undecided", Json::array()},
           {"causes", Json::array()},
           {"warnings", comparison.warnings},
           {"only_before", comparison.only_before},
           {"only_after", comparison.only_after},
           {"largest_within", nullptr}};
  if (comparison.largest_within) {
    out["largest_within"] = difference_json(*comparison.largest_within);
  }
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

Side text_side(std::string text) {
  return {std::move(text), std::nullopt, ""};
}
Side number_side(double number, std::string_view unit) {
  return {"", number, std::string(unit)};
}

Difference difference(std::string_view kind, std::string_view group, std::string_view where,
                      Side before, Side after, Better better) {
  Difference d;
  d.kind = kind;
  d.group = group;
  d.where = where;
  if (before.number && after.number) {
    d.change = relative_change(*before.number, *after.number);
    d.effect = effect_of(*before.number, *after.number, better);
  }
  d.before = std::move(before);
  d.after = std::move(after);
  return d;
}

void Builder::text(std::string_view kind, std::string_view group, std::string_view where,
                   const std::string& before, const std::string& after) {
  compared();
  if (before != after) {
    add(difference(kind, group, where, text_side(before), text_side(after)));
  }
}

void Builder::number(std::string_view kind, std::string_view group, std::string_view where,
                     std::optional<double> before, std::optional<double> after,
                     std::string_view unit, Better better) {
  if (!before && !after) {
    return;
  }
  compared();
  const auto side = [&](const std::optional<double>& number) {
    return number ? number_side(*number, unit) : Side{};
  };
  Difference d = difference(kind, group, where, side(before), side(after), better);
  if (before && after && !beyond(*before, *after, m_options.exact_tolerance)) {
    d.note = "within the tolerance";
    within(std::move(d));
  } else {
    add(std::move(d));
  }
}

void Builder::within(Difference difference) {
  const auto size = [](const std::optional<Difference>& d) {
    const double change = d && d->change ? *d->change : 0;
    return change > -1 ? std::abs(std::log1p(change)) : 0; // the same forth and back
  };
  // Equal sizes: by place, so that exchanging the documents changes nothing.
  std::optional<Difference>& largest = m_result.largest_within;
  const double a = size(largest), b = size(difference);
  if (b > a || (largest && b == a && difference.where < largest->where)) {
    largest = std::move(difference);
  }
}

void Builder::count(std::string_view kind, std::string_view group, std::string_view where,
                    double before, double after, std::string_view unit, Better better) {
  compared();
  if (before != after) {
    add(difference(kind, group, where, number_side(before, unit), number_side(after, unit),
                   better));
  }
}

void Builder::cause(std::string what, Side before, Side after) {
  m_result.causes.push_back({std::move(what), std::move(before), std::move(after)});
}

void Builder::causes_from(std::string_view prefix, const std::map<std::string, std::string>& before,
                          const std::map<std::string, std::string>& after) {
  for (const auto& [key, sides] : paired(before, after, &NamedText::first)) {
    const auto& [a, b] = sides;
    const FactRule* const rule = fact_rule(m_result.kind, fmt::format("{}/{}", prefix, key));
    const bool ignored = rule != nullptr && rule->use == FactRule::Use::never;
    if (!ignored && (a == nullptr || b == nullptr || a->second != b->second)) {
      const auto side = [](const NamedText* text) {
        return text != nullptr ? text_side(text->second) : Side{};
      };
      cause(fmt::format("{} {}", prefix, key), side(a), side(b));
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
    d.counts = m_options.strict;
  }
  m_result.only_worse = m_options.only_worse;
  m_result.strict = m_options.strict;
  return std::move(m_result);
}

} // namespace reckon
