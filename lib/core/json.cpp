// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"

#include "core/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

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

/// How a message begins: the file, and the place in it where that is not the whole document.
std::string place_of(const std::string& file, const std::string& pointer) {
  return file + (pointer.empty() ? "" : ": " + pointer) + ": ";
}

/// At most `limit` bytes of `text`, not cut inside a character.
std::string clipped(std::string text, std::size_t limit) {
  if (text.size() > limit) {
    std::size_t end = limit - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
      --end;
    }
    text = text.substr(0, end) + "...";
  }
  return text;
}

/// The value, short, for a message.
std::string shown(const Json& v) {
  return clipped(compact(v), 60);
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

template <class T>
void put_number(std::string& out, T v) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), v);
  static_cast<void>(error); // 32 characters hold the shortest form of any number
  out.append(buffer.data(), end);
}

void put_string(std::string& out, const std::string& text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return c >= ' ' && c != '"' && c != '\\' && static_cast<unsigned char>(c) < 0x7f;
  });
  if (plain) {
    out += '"';
    out += text;
    out += '"';
  } else { // names from a machine need not be UTF-8: what is not, is written as U+FFFD
    out += compact(text);
  }
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
      put_string(out, key);
      out += ": ";
      put(out, member, indent + 1);
    }
    if (!first) {
      newline(indent);
    }
    out += '}';
  } else if (v.is_array()) {
    const auto is_scalar = [](const Json& e) { return !e.is_structured(); };
    const bool flat = std::all_of(v.begin(), v.end(), [&](const Json& e) {
      return e.is_array() ? std::all_of(e.begin(), e.end(), is_scalar) : is_scalar(e);
    });
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
    const double number = v.get<double>();
    if (!std::isfinite(number)) {
      fail(ErrorKind::internal, "a document would hold a number that is not finite");
    }
    put_number(out, number == 0 ? 0.0 : number); // one spelling of zero
  } else if (v.is_number_unsigned()) {
    put_number(out, v.get<std::uint64_t>());
  } else if (v.is_number_integer()) {
    put_number(out, v.get<std::int64_t>());
  } else if (v.is_string()) {
    put_string(out, v.get_ref<const std::string&>());
  } else {
    out += v.dump();
  }
}

/// Nested deeper than any document; a limit keeps hostile files from exhausting the stack.
constexpr std::size_t k_max_depth = 64;

/// Builds the value that nlohmann's parser reads, event by event. Its own builder keeps the last of
/// two equal keys without a word and has no limit of depth.
class Builder {
public:
  Builder(Json& document, const std::string& file, std::string_view text)
      : m_document(document), m_file(file), m_text(text) {}

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(Json::number_integer_t value) { return put(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return put(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(Json::binary_t&) { return false; } // JSON text has none
  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& key) {
    const auto [member, added] = m_open.back().value->emplace(key, nullptr);
    if (!added) {
      fail(fmt::format("{}the key {} occurs twice in one object; keep one",
                       place_of(m_file, pointer()), shown(key)));
    }
    m_open.back().key = std::move(key);
    m_open.back().member = &*member;
    return true;
  }
  /// Named by nlohmann: called once for text that is not JSON.
  bool parse_error(std::size_t, const std::string&, const Json::exception& e) {
    const auto* const syntax = dynamic_cast<const Json::parse_error*>(&e);
    if (syntax == nullptr) { // a number too large for a double
      fail(fmt::format("{}: not valid JSON: {}", m_file, after(e.what(), "] ")));
    }
    const std::size_t at =
        std::min<std::size_t>(syntax->byte == 0 ? 0 : syntax->byte - 1, m_text.size());
    const auto line =
        1 + std::count(m_text.begin(), m_text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    const std::size_t start = m_text.substr(0, at).rfind('\n');
    const std::size_t column = start == std::string_view::npos ? at + 1 : at - start;
    // The parser quotes what it read last, which may be the whole file.
    fail(fmt::format("{}:{}:{}: not valid JSON{}: {}", m_file, line, column,
                     at >= m_text.size() ? " (the file ends too early)" : "",
                     clipped(after(after(e.what(), "column "), ": "), 160)));
  }

private:
  struct Level {
    Json* value;            // an object or an array that is not closed
    Json* member = nullptr; // of an object: where the next value goes
    std::string key;        // of that member
  };

  static std::string after(const std::string& text, std::string_view mark) {
    const std::size_t at = text.find(mark);
    return at == std::string::npos ? text : text.substr(at + mark.size());
  }
  [[noreturn]] static void fail(const std::string& message) {
    reckon::fail(ErrorKind::input, one_line(message));
  }
  [[nodiscard]] std::string pointer() const {
    std::string out;
    for (std::size_t i = 0; i + 1 < m_open.size(); ++i) {
      const Level& level = m_open[i];
      out += '/';
      out += level.value->is_array() ? std::to_string(level.value->size() - 1)
                                     : escape_pointer(level.key);
    }
    return out;
  }
  template <class T>
  Json* place(T&& value) {
    if (m_open.empty()) {
      m_document = std::forward<T>(value);
      return &m_document;
    }
    Level& level = m_open.back();
    if (level.member == nullptr) {
      return &level.value->emplace_back(std::forward<T>(value));
    }
    *level.member = std::forward<T>(value);
    return level.member;
  }
  template <class T>
  bool put(T&& value) {
    place(std::forward<T>(value));
    return true;
  }
  bool open(Json&& value) {
    if (m_open.size() == k_max_depth) {
      fail(fmt::format("{}: {}: nested deeper than {} levels; no document is", m_file, pointer(),
                       k_max_depth));
    }
    m_open.push_back({place(std::move(value)), nullptr, {}});
    return true;
  }
  bool close() {
    m_open.pop_back();
    return true;
  }

  Json& m_document;
  const std::string& m_file;
  std::string_view m_text;
  std::vector<Level> m_open;
};

} // namespace

JsonView::JsonView(const Json& value, std::string file)
    : m_value(&value), m_file(std::make_shared<const std::string>(std::move(file))) {}

void JsonView::fail(const std::string& problem) const {
  reckon::fail(ErrorKind::input, one_line(place_of(*m_file, m_pointer) + problem));
}

const Json& JsonView::object() const {
  if (!m_value->is_object()) {
    fail(fmt::format("must be an object, is {}", shown(*m_value)));
  }
  return *m_value;
}

const Json& JsonView::array(const char* what) const {
  if (!m_value->is_array()) {
    fail(fmt::format("must be an array{}, is {}", what, shown(*m_value)));
  }
  return *m_value;
}

JsonView JsonView::below(const Json& value, std::string_view key) const {
  return {&value, m_file, m_pointer + "/" + escape_pointer(key)};
}

JsonView JsonView::at(std::string_view key) const {
  const auto it = object().find(key);
  if (it == m_value->end()) {
    fail(fmt::format("the key \"{}\" is missing; add it", key));
  }
  return below(*it, key);
}

std::optional<JsonView> JsonView::find(std::string_view key) const {
  const auto it = object().find(key);
  return it == m_value->end() || it->is_null() ? std::nullopt : std::optional(below(*it, key));
}

void JsonView::only(std::initializer_list<std::string_view> keys) const {
  for (const auto& [key, member] : object().items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      const std::vector<std::string> known(keys.begin(), keys.end());
      const std::string near = did_you_mean(key, known);
      below(member, key)
          .fail(near.empty() ? fmt::format("unknown key; known here: {}", fmt::join(known, ", "))
                             : fmt::format("unknown key; did you mean \"{}\"?", near));
    }
  }
}

std::vector<JsonView> JsonView::elements() const {
  std::vector<JsonView> out;
  for (const Json& element : array("")) {
    out.push_back(below(element, std::to_string(out.size())));
  }
  return out;
}

std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  std::vector<std::pair<std::string, JsonView>> out;
  for (const auto& [key, member] : object().items()) {
    out.emplace_back(key, below(member, key));
  }
  return out;
}

std::string JsonView::string() const {
  if (!m_value->is_string()) {
    fail(fmt::format("must be a string, is {}", shown(*m_value)));
  }
  return m_value->get<std::string>();
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 256 && std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

std::string JsonView::name() const {
  std::string text = string();
  if (!is_name(text)) {
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
  if (m_value->is_number_unsigned() && m_value->get<std::uint64_t>() <= k_max_count) {
    return m_value->get<std::uint64_t>();
  }
  const double v = number();
  // A whole number in floating form ("1e3") is one too; above the limit doubles round.
  if (m_value->is_number_unsigned() || v < 0 || v > static_cast<double>(k_max_count) ||
      v != std::floor(v)) {
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
  std::vector<double> out;
  out.reserve(m_value->size());
  for (const Json& e : array(" of numbers")) {
    if (!e.is_number() || !std::isfinite(e.get<double>())) {
      below(e, std::to_string(out.size()))
          .fail(fmt::format("must be a finite number, is {}", shown(e)));
    }
    out.push_back(e.get<double>());
  }
  return out;
}

std::vector<std::uint64_t> JsonView::counts() const {
  std::vector<std::uint64_t> out;
  out.reserve(m_value->size());
  for (const Json& e : array(" of whole numbers")) {
    const bool plain = e.is_number_unsigned() && e.get<std::uint64_t>() <= k_max_count;
    out.push_back(plain ? e.get<std::uint64_t>() : below(e, std::to_string(out.size())).count());
  }
  return out;
}

Json parse_json(std::string_view text, const std::string& file) {
  Json document;
  Builder builder(document, file, text);
  Json::sax_parse(text.data(), text.data() + text.size(), &builder);
  return document;
}

std::string compact(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string canonical(const Json& value) {
  std::string out;
  put(out, value, 0);
  out += '\n';
  return out;
}

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  // Two letters changed of two are another word, not a slip.
  const std::size_t limit =
      std::min(std::max<std::size_t>(2, word.size() / 3), word.empty() ? 0 : word.size() - 1);
  std::size_t best_distance = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t d = edit_distance(word, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  if (best.empty() && word.size() >= 3) { // "memory" for "memory_bytes"
    const auto longer = std::find_if(candidates.begin(), candidates.end(),
                                     [&](const std::string& c) { return c.starts_with(word); });
    best = longer == candidates.end() ? "" : *longer;
  }
  return best;
}

} // namespace reckon
