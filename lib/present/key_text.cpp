// SPDX-License-Identifier: Apache-2.0
#include "present/key_text.hpp"

#include "core/units.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace reckon {
namespace {

std::string counted(int n, std::string_view what) {
  return n == 0 ? "" : fmt::format("{} {}{}", n, what, n == 1 || what == "in flight" ? "" : "s");
}

/// A part of a key: what it is called, and what stands there.
struct KnownField {
  std::string_view name;
  std::string (*text)(const CellKey& key);
};

/// In the order of KeyField.
constexpr std::array<KnownField, 12> k_fields{{
    {"from", [](const CellKey& k) { return k.from; }},
    {"to", [](const CellKey& k) { return k.to.empty() ? "" : "-> " + k.to; }},
    {"transport", [](const CellKey& k) { return k.transport; }},
    {"direction",
     [](const CellKey& k) -> std::string {
       return k.direction == k_one_way   ? "one way"
              : k.direction == k_two_way ? "two ways"
                                         : k.direction;
     }},
    {"operation", [](const CellKey& k) { return k.operation; }},
    {"dtype", [](const CellKey& k) { return k.dtype; }},
    {"sources", [](const CellKey& k) { return counted(k.sources, "source"); }},
    {"state", [](const CellKey& k) { return k.state; }},
    {"threads", [](const CellKey& k) { return counted(k.threads, "thread"); }},
    {"pairs", [](const CellKey& k) { return counted(k.pairs, "pair"); }},
    {"in flight", [](const CellKey& k) { return counted(k.in_flight, "in flight"); }},
    {"size", [](const CellKey& k) { return k.bytes == 0 ? "" : to_text(Bytes(k.bytes)); }},
}};

} // namespace

const KeyFields& all_fields() {
  static const KeyFields fields = [] {
    KeyFields all;
    for (std::size_t i = 0; i < k_fields.size(); ++i) {
      all.push_back(static_cast<KeyField>(i));
    }
    return all;
  }();
  return fields;
}

std::string_view name_of(KeyField field) {
  return k_fields[static_cast<std::size_t>(field)].name;
}

std::string field_text(const CellKey& key, KeyField field) {
  return k_fields[static_cast<std::size_t>(field)].text(key);
}

bool has(const KeyFields& fields, KeyField field) {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

KeyFields without(KeyFields fields, KeyField field) {
  std::erase(fields, field);
  return fields;
}

std::string label_of(const CellKey& key, const KeyFields& fields, std::string_view separator) {
  std::string out;
  for (const KeyField field : fields) {
    const std::string text = field_text(key, field);
    // "m0/numa0 -> m0/numa1" is one thing.
    const bool pair = field == KeyField::to && !out.empty();
    if (!text.empty()) {
      out += (out.empty() ? "" : (pair ? " " : std::string(separator))) + text;
    }
  }
  return out;
}

KeyFields varying_fields(const std::vector<const Cell*>& cells) {
  KeyFields out;
  for (const KeyField field : all_fields()) {
    const std::string first = field_text(cells.front()->key, field);
    if (std::any_of(cells.begin(), cells.end(),
                    [&](const Cell* cell) { return field_text(cell->key, field) != first; })) {
      out.push_back(field);
    }
  }
  return out;
}

KeyFields common_fields(const std::vector<const Cell*>& cells) {
  KeyFields out = all_fields();
  for (const KeyField field : varying_fields(cells)) {
    out = without(std::move(out), field);
  }
  return out;
}

} // namespace reckon
