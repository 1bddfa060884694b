// SPDX-License-Identifier: Apache-2.0
#include "documents/fields.hpp"

#include "documents/document.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace reckon::documents {
namespace {

constexpr std::string_view k_prefix = "reckon/";
constexpr std::array<std::string_view, 5> k_kinds{"profile", "workload", "roles", "plan", "report"};

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

std::string with_article(std::string_view kind) {
  return kind == "roles" ? "a roles document" : fmt::format("a {}", kind);
}

/// Absent has one spelling: no key.
void refuse_nulls(const JsonView& value) {
  const Json& raw = value.raw();
  if (raw.is_null()) {
    value.fail("null stands for nothing in a document; give a value or remove the key");
  }
  if (raw.is_object()) {
    for (const auto& [key, member] : value.members()) {
      refuse_nulls(member);
    }
  } else if (raw.is_array() && std::any_of(raw.begin(), raw.end(), [](const Json& e) {
               return e.is_null() || e.is_structured();
             })) {
    for (const JsonView& element : value.elements()) {
      refuse_nulls(element);
    }
  }
}

} // namespace

Json with_header(std::string_view kind) {
  Json json = Json::object();
  json["schema"] = fmt::format("{}{}", k_prefix, kind);
  json["schema_version"] = k_schema_version;
  return json;
}

std::string kind_in_header(const JsonView& document) {
  if (!document.raw().is_object() || !document.find("schema")) {
    document.fail(
        fmt::format("this is no reckon document; the key \"schema\" must be one of {0}{1}",
                    k_prefix, fmt::join(k_kinds, fmt::format(", {}", k_prefix))));
  }
  const JsonView schema = document.at("schema");
  const std::string text = schema.one_of(
      {"reckon/profile", "reckon/workload", "reckon/roles", "reckon/plan", "reckon/report"});
  const JsonView version = document.at("schema_version");
  if (const std::uint64_t v = positive_count(version); v > k_schema_version) {
    version.fail(fmt::format("is {}, and this reckon reads up to {}: written by a newer reckon; "
                             "update reckon, or make the file again with this one",
                             v, k_schema_version));
  }
  return text.substr(k_prefix.size());
}

void check_header(const JsonView& document, std::string_view kind) {
  const std::string found = kind_in_header(document);
  if (found != kind) {
    document.at("schema").fail(
        fmt::format("this is {}, {} is wanted here", with_article(found), with_article(kind)));
  }
  refuse_nulls(document);
}

std::string optional_text(const JsonView& object, std::string_view key) {
  const auto value = object.find(key);
  return value ? value->string() : std::string();
}

std::string some_text(const JsonView& value) {
  std::string text = value.string();
  if (text.empty()) {
    value.fail("must not be empty");
  }
  return text;
}

void put_text(Json& object, const char* key, const std::string& text) {
  if (!text.empty()) {
    object[key] = text;
  }
}

Texts texts_from_json(const JsonView& object) {
  Texts texts;
  for (const auto& [key, value] : object.members()) {
    if (key.empty()) {
      value.fail("a name must not be empty; name it or remove it");
    }
    texts.emplace(key, value.string());
  }
  return texts;
}

Json json_of(const Texts& texts) {
  Json json = Json::object();
  for (const auto& [key, value] : texts) {
    json[key] = value;
  }
  return json;
}

std::uint64_t positive_count(const JsonView& value) {
  const std::uint64_t v = value.count();
  if (v == 0) {
    value.fail("must be at least 1, is 0");
  }
  return v;
}

std::vector<JsonView> some_elements(const JsonView& array, std::string_view what) {
  std::vector<JsonView> elements = array.elements();
  if (elements.empty()) {
    array.fail(fmt::format("is empty; at least one {} is needed", what));
  }
  return elements;
}

std::string snake_name(const JsonView& value) {
  std::string text = value.name();
  if (!(text[0] >= 'a' && text[0] <= 'z') || !std::all_of(text.begin(), text.end(), [](char c) {
        return is_lower_or_digit(c) || c == '_';
      })) {
    value.fail(
        fmt::format("is \"{}\"; must be lower-case letters, digits and _, a letter first", text));
  }
  return text;
}

std::string digest_from_json(const JsonView& value) {
  std::string digest = value.string();
  constexpr std::string_view k_algorithm = "sha256:";
  const bool valid =
      digest.size() == k_algorithm.size() + 64 && digest.starts_with(k_algorithm) &&
      digest.find_first_not_of("0123456789abcdef", k_algorithm.size()) == std::string::npos;
  if (!valid) {
    value.fail("must be \"sha256:\" and 64 hexadecimal digits in lower case");
  }
  return digest;
}

DocumentLink link_from_json(const JsonView& object) {
  object.only({"name", "digest"});
  return {.name = object.at("name").name(), .digest = digest_from_json(object.at("digest"))};
}

Json json_of(const DocumentLink& link) {
  return {{"name", link.name}, {"digest", link.digest}};
}

Prediction prediction_from_json(const JsonView& object) {
  object.only(
      {"bound_seconds", "bound_by", "lo_seconds", "mid_seconds", "hi_seconds", "terms", "relief"});
  Prediction p;
  p.bound_seconds = object.at("bound_seconds").non_negative();
  p.bound_by = object.at("bound_by").string();
  p.lo_seconds = object.at("lo_seconds").non_negative();
  p.mid_seconds = object.at("mid_seconds").non_negative();
  p.hi_seconds = object.at("hi_seconds").non_negative();
  p.relief = optional_text(object, "relief");
  if (p.lo_seconds > p.mid_seconds || p.mid_seconds > p.hi_seconds) {
    object.fail(fmt::format("lo_seconds {} <= mid_seconds {} <= hi_seconds {} must hold",
                            p.lo_seconds, p.mid_seconds, p.hi_seconds));
  }
  // Sums of doubles in another order differ in their last digits.
  constexpr double k_rounding = 1e-6;
  if (p.mid_seconds < p.bound_seconds * (1 - k_rounding)) {
    object.at("mid_seconds")
        .fail(fmt::format("is {}, below bound_seconds {}, which nothing can beat", p.mid_seconds,
                          p.bound_seconds));
  }
  Unique names("term");
  double sum = 0;
  for (const JsonView& term : object.at("terms").elements()) {
    term.only({"name", "seconds"});
    p.terms.push_back(
        {.name = snake_name(term.at("name")), .seconds = term.at("seconds").number()});
    names.add(p.terms.back().name, term.at("name"));
    sum += p.terms.back().seconds;
  }
  if (!p.terms.empty() && std::abs(sum - p.mid_seconds) > k_rounding * p.mid_seconds) {
    object.at("terms").fail(fmt::format("sum to {}, not to mid_seconds {}", sum, p.mid_seconds));
  }
  return p;
}

Json json_of(const Prediction& p) {
  Json terms = Json::array();
  for (const Term& term : p.terms) {
    terms.push_back({{"name", term.name}, {"seconds", term.seconds}});
  }
  Json json = {{"bound_seconds", p.bound_seconds}, {"bound_by", p.bound_by},
               {"lo_seconds", p.lo_seconds},       {"mid_seconds", p.mid_seconds},
               {"hi_seconds", p.hi_seconds},       {"terms", std::move(terms)}};
  put_text(json, "relief", p.relief);
  return json;
}

void Unique::add(const std::string& name, const JsonView& where) {
  const auto [first, added] = m_first.try_emplace(name, where.pointer());
  if (!added) {
    where.fail(fmt::format("the {} \"{}\" occurs twice, first at {}; rename or remove one", m_what,
                           name, first->second));
  }
}

} // namespace reckon::documents
