// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "import/records/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace reckon::import_detail {
namespace {

/// The stack machine of pickle protocols 2 to 5, without the opcodes that import, call or build
/// anything. Tuples, sets and bytes are lists and texts here.
class PickleReader {
public:
  PickleReader(std::string_view bytes, const std::string& file) : m_bytes(bytes), m_file(file) {}

  [[nodiscard]] Json read();

private:
  using R = PickleReader; // in the table of opcodes
  using N = std::uint64_t;
  struct Opcode {
    unsigned char code;
    std::size_t argument; ///< bytes of the number behind it
    void (*act)(PickleReader&, std::uint64_t argument);
  };
  static const Opcode k_opcodes[];

  [[noreturn]] void refuse(const std::string& problem) const {
    fail(ErrorKind::input, fmt::format("{}: byte {}: {}", m_file, m_opcode_at, problem));
  }
  [[noreturn]] void refuse_damage() const {
    refuse("is not what a Flight Recorder writes; copy the file again");
  }

  [[nodiscard]] std::string_view take(std::uint64_t count) {
    if (count > m_bytes.size() - m_at) {
      refuse("the pickle ends in the middle of a value; copy the whole file");
    }
    m_at += count;
    return m_bytes.substr(m_at - count, count);
  }

  /// Little-endian, of at most 8 bytes.
  [[nodiscard]] std::uint64_t number(std::size_t bytes) {
    const std::string_view taken = take(bytes);
    return std::accumulate(taken.rbegin(), taken.rend(), std::uint64_t{0}, [](auto value, char c) {
      return value << 8U | static_cast<unsigned char>(c);
    });
  }

  /// As Python's objects: others may hold a list before it is filled.
  struct Value {
    Json scalar;                 ///< of a list [] and of a dictionary {}
    std::vector<Value*> items{}; ///< of a dictionary: key, value, key, ...
  };

  void push(Json scalar) {
    m_stack.push_back(&m_values.emplace_back(Value{.scalar = std::move(scalar)}));
  }
  void push_list(std::vector<Value*> items) {
    push(Json::array());
    m_stack.back()->items = std::move(items);
  }
  void push_text(std::uint64_t bytes) { push(std::string(take(bytes))); }

  /// PyTorch writes 8 bytes; Python as few as a positive number needs.
  void push_long(std::uint64_t bytes) {
    if (bytes > 8) {
      refuse_damage();
    }
    push(static_cast<std::int64_t>(number(bytes)));
  }

  void push_real(std::uint64_t big_endian) {
    const auto value = std::bit_cast<double>(__builtin_bswap64(big_endian));
    if (!std::isfinite(value)) {
      refuse_damage();
    }
    push(value);
  }

  /// The values from an index of the stack on, which must not be below the last mark.
  [[nodiscard]] std::vector<Value*> pop_from(std::size_t index) {
    if (index > m_stack.size() || (!m_marks.empty() && index < m_marks.back())) {
      refuse_damage();
    }
    const auto first = m_stack.begin() + static_cast<std::ptrdiff_t>(index);
    std::vector<Value*> values(first, m_stack.end());
    m_stack.erase(first, m_stack.end());
    return values;
  }
  [[nodiscard]] std::vector<Value*> pop_last(std::size_t count) {
    return pop_from(m_stack.size() - count); // above all when there are fewer
  }
  [[nodiscard]] std::vector<Value*> pop_to_mark() {
    if (m_marks.empty()) {
      refuse_damage();
    }
    std::vector<Value*> values = pop_from(m_marks.back());
    m_marks.pop_back();
    return values;
  }

  [[nodiscard]] Value* top() {
    if (m_stack.empty()) {
      refuse_damage();
    }
    return m_stack.back();
  }

  /// To the list or dictionary on top of the stack.
  void append(const std::vector<Value*>& values, Json::value_t type) {
    if (top()->scalar.type() != type) {
      refuse_damage();
    }
    top()->items.insert(top()->items.end(), values.begin(), values.end());
  }

  void recall(std::uint64_t index) {
    const auto at = m_memo.find(index);
    if (at == m_memo.end()) {
      refuse_damage();
    }
    m_stack.push_back(at->second);
  }

  /// With a copy at each place that holds a value.
  [[nodiscard]] Json whole(const Value& value, int depth) {
    constexpr int k_deepest = 64;
    constexpr std::size_t k_most_values = 5'000'000, k_most_bytes = std::size_t{1} << 30U;
    if (depth > k_deepest || ++m_copied > k_most_values) {
      refuse_damage();
    }
    if (const auto* const text = value.scalar.get_ptr<const std::string*>()) {
      m_copied_bytes += text->size();
    }
    if (m_copied_bytes > k_most_bytes) {
      refuse_damage();
    }
    Json out = value.scalar;
    if (out.is_array()) {
      for (const Value* const item : value.items) {
        out.push_back(whole(*item, depth + 1));
      }
    }
    for (std::size_t i = 0; out.is_object() && i < value.items.size(); i += 2) {
      if (i + 1 == value.items.size() || !value.items[i]->scalar.is_string()) {
        refuse_damage();
      }
      out[value.items[i]->scalar.get<std::string>()] = whole(*value.items[i + 1], depth + 1);
    }
    return out;
  }

  std::string_view m_bytes;
  const std::string& m_file;
  std::size_t m_at = 0, m_opcode_at = 0, m_copied = 0, m_copied_bytes = 0;
  std::deque<Value> m_values; ///< all that were made
  std::vector<Value*> m_stack;
  std::vector<std::size_t> m_marks;
  std::map<std::uint64_t, Value*> m_memo;
};

constexpr auto k_list = Json::value_t::array, k_dictionary = Json::value_t::object;

const PickleReader::Opcode PickleReader::k_opcodes[] = {
    {0x80, 1, [](R&, N) {}}, // PROTO
    {0x95, 8, [](R&, N) {}}, // FRAME
    {'(', 0, [](R& r, N) { r.m_marks.push_back(r.m_stack.size()); }},
    {'N', 0, [](R& r, N) { r.push(nullptr); }},
    {0x88, 0, [](R& r, N) { r.push(true); }},
    {0x89, 0, [](R& r, N) { r.push(false); }},
    {'K', 1, [](R& r, N value) { r.push(value); }},
    {'M', 2, [](R& r, N value) { r.push(value); }},
    {'J', 4, [](R& r, N value) { r.push(static_cast<std::int32_t>(value)); }},
    {0x8a, 1, [](R& r, N bytes) { r.push_long(bytes); }}, // LONG1
    {'G', 8, [](R& r, N value) { r.push_real(value); }},
    {0x8c, 1, [](R& r, N bytes) { r.push_text(bytes); }}, // SHORT_BINUNICODE
    {'X', 4, [](R& r, N bytes) { r.push_text(bytes); }},
    {0x8d, 8, [](R& r, N bytes) { r.push_text(bytes); }}, // BINUNICODE8
    {'C', 1, [](R& r, N bytes) { r.push_text(bytes); }},
    {'B', 4, [](R& r, N bytes) { r.push_text(bytes); }},
    {0x8e, 8, [](R& r, N bytes) { r.push_text(bytes); }}, // BINBYTES8
    {0x96, 8, [](R& r, N bytes) { r.push_text(bytes); }}, // BYTEARRAY8
    {']', 0, [](R& r, N) { r.push_list({}); }},
    {')', 0, [](R& r, N) { r.push_list({}); }},
    {0x8f, 0, [](R& r, N) { r.push_list({}); }}, // EMPTY_SET
    {'}', 0, [](R& r, N) { r.push(Json::object()); }},
    {'t', 0, [](R& r, N) { r.push_list(r.pop_to_mark()); }},
    {0x91, 0, [](R& r, N) { r.push_list(r.pop_to_mark()); }}, // FROZENSET
    {0x85, 0, [](R& r, N) { r.push_list(r.pop_last(1)); }},   // TUPLE1
    {0x86, 0, [](R& r, N) { r.push_list(r.pop_last(2)); }},
    {0x87, 0, [](R& r, N) { r.push_list(r.pop_last(3)); }},
    {'a', 0, [](R& r, N) { r.append(r.pop_last(1), k_list); }},
    {'e', 0, [](R& r, N) { r.append(r.pop_to_mark(), k_list); }},
    {0x90, 0, [](R& r, N) { r.append(r.pop_to_mark(), k_list); }}, // ADDITEMS
    {'s', 0, [](R& r, N) { r.append(r.pop_last(2), k_dictionary); }},
    {'u', 0, [](R& r, N) { r.append(r.pop_to_mark(), k_dictionary); }},
    {'q', 1, [](R& r, N index) { r.m_memo[index] = r.top(); }},
    {'r', 4, [](R& r, N index) { r.m_memo[index] = r.top(); }},
    {0x94, 0, [](R& r, N) { r.m_memo[r.m_memo.size()] = r.top(); }}, // MEMOIZE
    {'h', 1, [](R& r, N index) { r.recall(index); }},
    {'j', 4, [](R& r, N index) { r.recall(index); }}};

Json PickleReader::read() {
  while (true) {
    m_opcode_at = m_at;
    const auto code = static_cast<unsigned char>(number(1));
    if (code == '.') {
      return whole(*top(), 0);
    }
    const auto* const known = std::ranges::find(k_opcodes, code, &Opcode::code);
    if (known == std::end(k_opcodes)) {
      refuse(fmt::format("opcode 0x{:02x} may run code or make an object, which reckon never does "
                         "and a Flight Recorder does not need; do not load this file in Python",
                         code));
    }
    known->act(*this, number(known->argument));
  }
}

} // namespace

bool is_pickle(std::string_view bytes) {
  return bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5;
}

std::string json_of_pickle(std::string_view bytes, const std::string& file) {
  return compact(PickleReader(bytes, file).read());
}

} // namespace reckon::import_detail
