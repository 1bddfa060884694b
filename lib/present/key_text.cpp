// SPDX-License-Identifier: Apache-2.0
#include "present/key_text.hpp"

#include "core/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

std::string counted(int n, std::string_view what) {
  return n == 0 ? "" : fmt::format("{} {}{}", n, what, n == 1 || what == "in flight" ? "" : "s");
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

} // namespace

const KeyFields& all_fields() {
  static const KeyFields fields{KeyField::from,      KeyField::to,        KeyField::transport,
                                KeyField::direction, KeyField::operation, KeyField::dtype,
                                KeyField::sources,   KeyField::state,     KeyField::threads,
                                KeyField::pairs,     KeyField::in_flight, KeyField::bytes};
  return fields;
}

std::string_view name_of(KeyField field) {
  switch (field) {
  case KeyField::from:
    return "from";
  case KeyField::to:
    return "to";
  case KeyField::transport:
    return "transport";
  case KeyField::direction:
    return "direction";
  case KeyField::operation:
    return "operation";
  case KeyField::dtype:
    return "dtype";
  case KeyField::sources:
    return "sources";
  case KeyField::state:
    return "state";
  case KeyField::threads:
    return "threads";
  case KeyField::pairs:
    return "pairs";
  case KeyField::in_flight:
    return "in flight";
  case KeyField::bytes:
    return "size";
  }
  return "?";
}

bool has(const KeyFields& fields, KeyField field) {
  return std::find(fields.begin(), fields.end(), field) != fields.end();
}

KeyFields without(KeyFields fields, KeyField field) {
  fields.erase(std::remove(fields.begin(), fields.end(), field), fields.end());
  return fields;
}

std::string field_text(const CellKey& key, KeyField field) {
  switch (field) {
  case KeyField::from:
    return key.from;
  case KeyField::to:
    return key.to.empty() ? "" : "-> " + key.to;
  case KeyField::transport:
    return key.transport;
  case KeyField::direction:
    return key.direction == "one_way" ? "one way"
                                      : (key.direction == "two_way" ? "two ways" : key.direction);
  case KeyField::operation:
    return key.operation;
  case KeyField::dtype:
    return key.dtype;
  case KeyField::sources:
    return counted(key.sources, "source");
  case KeyField::state:
    return key.state;
  case KeyField::threads:
    return counted(key.threads, "thread");
  case KeyField::pairs:
    return counted(key.pairs, "pair");
  case KeyField::in_flight:
    return counted(key.in_flight, "in flight");
  case KeyField::bytes:
    return key.bytes == 0 ? "" : to_text(Bytes(key.bytes));
  }
  return "";
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

bool natural_less(const std::string& a, const std::string& b) {
  std::size_t i = 0;
  std::size_t j = 0;
  const auto number_at = [](const std::string& s, std::size_t& at) {
    const std::size_t begin = std::min(s.find_first_not_of('0', at), s.size());
    std::size_t end = begin;
    while (end < s.size() && is_digit(s[end])) {
      ++end;
    }
    at = end;
    return s.substr(begin, end - begin);
  };
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string x = number_at(a, i);
      const std::string y = number_at(b, j);
      if (x.size() != y.size()) {
        return x.size() < y.size();
      }
      if (x != y) {
        return x < y;
      }
      continue;
    }
    if (a[i] != b[j]) {
      return a[i] < b[j];
    }
    ++i;
    ++j;
  }
  // What is equal but for leading zeros still needs an order.
  return a.size() - i != b.size() - j ? a.size() - i < b.size() - j : a < b;
}

} // namespace reckon
