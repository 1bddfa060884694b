// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <set>

namespace reckon {
namespace {

std::string escape_pointer(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

/// The value, short, for a message.
std::string shown(const Json& v) {
  std::string text = v.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) {
    text = text.substr(0, 57) + "...";
  }
  return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row.back();
}

void put_number(std::string& out, double v) {
  if (!std::isfinite(v)) {
    fail(ErrorKind::internal, "a document would hold a number that is not finite");
  }
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v == 0 ? 0.0 : v);
  static_cast<void>(error);
  out.append(buffer.data(), end);
}

void put(std::string& out, const Json& v, std::size_t indent) {
  const auto newline = [&](std::size_t depth) {
    out += '\n';
    out.append(depth * 2, ' ');
  };
  if (v.is_object()) {
    out += '{';
    bool first = true;
    for (const auto& [key, member] : v.items()) {
      out += first ? "" : ",";
      first = false;
      newline(indent + 1);
      out += Json(key).dump();
      out += ": ";
      put(out, member, indent + 1);
    }
    if (!first) {
      newline(indent);
    }
    out += '}';
  } else if (v.is_array()) {
    const bool flat = std::none_of(v.begin(), v.end(), [](const Json& e) { return e.is_structured(); });
    out += '[';
    bool first = true;
    for (const Json& e : v) {
      out += first ? "" : (flat ? ", " : ",");
      first = false;
      if (!flat) {
        newline(indent + 1);
      }
      put(out, e, indent + 1);
    }
    if (!flat) {
      newline(indent);
    }
    out += ']';
  } else if (v.is_number_float()) {
    put_number(out, v.get<double>());
  } else {
    out += v.dump();
  }
}

} // namespace

JsonView::JsonView(const Json& value, std::string file)
    : m_value(&value), m_file(std::make_shared<const std::string>(std::move(file))) {}

void JsonView::fail(const std::string& problem) const {
  reckon::fail(ErrorKind::input, fmt::format("{}: {}: {}", *m_file, pointer(), problem));
}

JsonView JsonView::at(std::string_view key) const {
  if (!m_value->is_object()) {
    fail(fmt::format("must be an object, is {}", shown(*m_value)));
  }
  const auto it = m_value->find(key);
  if (it == m_value->end()) {
    fail(fmt::format("the key \"{}\" is missing; add it", key));
  }
  return {&*it, m_file, m_pointer + "/" + escape_pointer(key)};
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  if (!m_value->is_object()) {
    fail(fmt::format("must be an object, is {}", shown(*m_value)));
  }
  const auto it = m_value->find(key);
  if (it == m_value->end() || it->is_null()) {
    return std::nullopt;
  }
  return JsonView(&*it, m_file, m_pointer + "/" + escape_pointer(key));
}

void JsonView::only(std::initializer_list<std::string_view> keys) const {
  if (!m_value->is_object()) {
    fail(fmt::format("must be an object, is {}", shown(*m_value)));
  }
  for (const auto& [key, member] : m_value->items()) {
    static_cast<void>(member);
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const std::vector<std::string> known(keys.begin(), keys.end());
      const std::string near = did_you_mean(key, known);
      JsonView(m_value, m_file, m_pointer + "/" + escape_pointer(key))
          .fail(near.empty() ? fmt::format("unknown key; known here: {}", fmt::join(known, ", "))
                             : fmt::format("unknown key; did you mean \"{}\"?", near));
    }
  }
}

std::vector<JsonView> JsonView::elements() const {
  if (!m_value->is_array()) {
    fail(fmt::format("must be an array, is {}", shown(*m_value)));
  }
  std::vector<JsonView> out;
  out.reserve(m_value->size());
  for (std::size_t i = 0; i < m_value->size(); ++i) {
    out.push_back(JsonView(&(*m_value)[i], m_file, fmt::format("{}/{}", m_pointer, i)));
  }
  return out;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  if (!m_value->is_object()) {
    fail(fmt::format("must be an object, is {}", shown(*m_value)));
  }
  std::vector<std::pair<std::string, JsonView>> out;
  for (const auto& [key, member] : m_value->items()) {
    out.emplace_back(key, JsonView(&member, m_file, m_pointer + "/" + escape_pointer(key)));
  }
  return out;
}

std::string JsonView::string() const {
  if (!m_value->is_string()) {
    fail(fmt::format("must be a string, is {}", shown(*m_value)));
  }
  return m_value->get<std::string>();
}

std::string JsonView::name() const {
  std::string text = string();
  const bool printable =
      std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (text.empty() || text.size() > 256 || !printable) {
    fail("must be a name: 1 to 256 characters, no control characters");
  }
  return text;
}

std::string JsonView::one_of(std::initializer_list<std::string_view> allowed) const {
  std::string text = string();
  if (std::find(allowed.begin(), allowed.end(), text) == allowed.end()) {
    fail(fmt::format("is {}; must be one of {}", shown(*m_value), fmt::join(allowed, ", ")));
  }
  return text;
}

bool JsonView::boolean() const {
  if (!m_value->is_boolean()) {
    fail(fmt::format("must be true or false, is {}", shown(*m_value)));
  }
  return m_value->get<bool>();
}

double JsonView::number() const {
  if (!m_value->is_number()) {
    fail(fmt::format("must be a number, is {}", shown(*m_value)));
  }
  const double v = m_value->get<double>();
  if (!std::isfinite(v)) {
    fail(fmt::format("must be a finite number, is {}", shown(*m_value)));
  }
  return v;
}

double JsonView::non_negative() const {
  const double v = number();
  if (v < 0) {
    fail(fmt::format("must not be negative, is {}", shown(*m_value)));
  }
  return v;
}

double JsonView::positive() const {
  const double v = number();
  if (v <= 0) {
    fail(fmt::format("must be greater than 0, is {}", shown(*m_value)));
  }
  return v;
}

std::uint64_t JsonView::count() const {
  constexpr double k_limit = 9007199254740992.0; // 2^53: above it JSON readers lose digits
  const double v = number();
  if (v < 0 || v > k_limit || v != std::floor(v)) {
    fail(fmt::format("must be a whole number from 0 to 2^53, is {}", shown(*m_value)));
  }
  return static_cast<std::uint64_t>(v);
}

int JsonView::integer(int low, int high) const {
  const double v = number();
  if (v < low || v > high || v != std::floor(v)) {
    fail(fmt::format("must be a whole number from {} to {}, is {}", low, high, shown(*m_value)));
  }
  return static_cast<int>(v);
}

std::vector<double> JsonView::numbers() const {
  if (!m_value->is_array()) {
    fail(fmt::format("must be an array of numbers, is {}", shown(*m_value)));
  }
  std::vector<double> out;
  out.reserve(m_value->size());
  for (std::size_t i = 0; i < m_value->size(); ++i) {
    const Json& e = (*m_value)[i];
    if (!e.is_number() || !std::isfinite(e.get<double>())) {
      JsonView(&e, m_file, fmt::format("{}/{}", m_pointer, i)).fail(fmt::format("must be a finite number, is {}", shown(e)));
    }
    out.push_back(e.get<double>());
  }
  return out;
}

std::vector<std::uint64_t> JsonView::counts() const {
  if (!m_value->is_array()) {
    fail(fmt::format("must be an array of whole numbers, is {}", shown(*m_value)));
  }
  std::vector<std::uint64_t> out;
  out.reserve(m_value->size());
  for (std::size_t i = 0; i < m_value->size(); ++i) {
    const Json& e = (*m_value)[i];
    out.push_back(e.is_number_unsigned() ? e.get<std::uint64_t>()
                                         : JsonView(&e, m_file, fmt::format("{}/{}", m_pointer, i)).count());
  }
  return out;
}

Json parse_json(std::string_view text, const std::string& file) {
  // One set of keys for each open object: nlohmann keeps the last of two equal keys without a word.
  std::vector<std::set<std::string>> open;
  const auto callback = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      open.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open.pop_back();
    } else if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second) {
      fail(ErrorKind::input, fmt::format("{}: the key {} occurs twice in one object; keep one", file, shown(parsed)));
    }
    return true;
  };
  try {
    return Json::parse(text, callback);
  } catch (const Json::parse_error& e) {
    const std::size_t at = std::min<std::size_t>(e.byte == 0 ? 0 : e.byte - 1, text.size());
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::size_t start = text.substr(0, at).rfind('\n');
    const std::size_t column = start == std::string_view::npos ? at + 1 : at - start;
    std::string what = e.what();
    if (const auto colon = what.rfind("; "); colon != std::string::npos) {
      what = what.substr(colon + 2);
    } else if (const auto cut = what.find(": "); cut != std::string::npos) {
      what = what.substr(cut + 2);
    }
    fail(ErrorKind::input,
         fmt::format("{}:{}:{}: not valid JSON{}: {}", file, line, column, at >= text.size() ? " (the file ends too early)" : "",
                     what));
  } catch (const Json::exception& e) {
    fail(ErrorKind::input, fmt::format("{}: not valid JSON: {}", file, e.what()));
  }
}

std::string canonical(const Json& value) {
  std::string out;
  put(out, value, 0);
  out += '\n';
  return out;
}

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t d = edit_distance(word, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

} // namespace reckon
