// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "import/records/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace reckon::import_detail {
namespace {

/// The stack machine of pickle protocol 2, without the opcodes that import, call or build
/// anything. PyTorch writes a value in full before others may refer to it.
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

  void push(Json value) { m_stack.push_back(std::move(value)); }

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
  [[nodiscard]] Json::array_t pop_from(std::size_t index) {
    if (index > m_stack.size() || (!m_marks.empty() && index < m_marks.back())) {
      refuse_damage();
    }
    const auto first = m_stack.begin() + static_cast<std::ptrdiff_t>(index);
    Json::array_t values(std::make_move_iterator(first), std::make_move_iterator(m_stack.end()));
    m_stack.erase(first, m_stack.end());
    return values;
  }
  [[nodiscard]] Json::array_t pop_last(std::size_t count) {
    return pop_from(m_stack.size() - count); // above all when there are fewer
  }
  [[nodiscard]] Json::array_t pop_to_mark() {
    if (m_marks.empty()) {
      refuse_damage();
    }
    Json::array_t values = pop_from(m_marks.back());
    m_marks.pop_back();
    return values;
  }

  [[nodiscard]] Json& top(Json::value_t type) {
    if (m_stack.empty() || (type != Json::value_t::discarded && m_stack.back().type() != type)) {
      refuse_damage();
    }
    return m_stack.back();
  }

  void append(Json::array_t values) {
    Json& list = top(Json::value_t::array);
    std::ranges::move(values, std::back_inserter(list.get_ref<Json::array_t&>()));
  }

  void set(Json::array_t values) {
    Json& dict = top(Json::value_t::object);
    for (std::size_t i = 0; i < values.size(); i += 2) {
      if (i + 1 == values.size() || !values[i].is_string()) {
        refuse_damage();
      }
      dict[values[i].get<std::string>()] = std::move(values[i + 1]);
    }
  }

  void remember(std::uint64_t index) { m_memo[index] = top(Json::value_t::discarded); }
  void recall(std::uint64_t index) {
    constexpr std::size_t k_most_values = 5'000'000;
    const auto at = m_memo.find(index);
    if (at == m_memo.end() || (at->second.is_structured() && at->second.empty()) ||
        (m_values += values_in(at->second, 0)) > k_most_values) {
      refuse_damage();
    }
    push(at->second);
  }
  [[nodiscard]] std::size_t values_in(const Json& value, int depth) const {
    constexpr int k_deepest = 64;
    if (depth > k_deepest) {
      refuse_damage();
    }
    std::size_t count = 1;
    for (auto at = value.begin(); value.is_structured() && at != value.end(); ++at) {
      count += values_in(*at, depth + 1);
    }
    return count;
  }

  std::string_view m_bytes;
  const std::string& m_file;
  std::size_t m_at = 0, m_opcode_at = 0, m_values = 0;
  std::vector<Json> m_stack;
  std::vector<std::size_t> m_marks;
  std::map<std::uint64_t, Json> m_memo;
};

const PickleReader::Opcode PickleReader::k_opcodes[] = {
    {0x80, 1, [](R&, N) {}}, // PROTO
    {'(', 0, [](R& r, N) { r.m_marks.push_back(r.m_stack.size()); }},
    {'N', 0, [](R& r, N) { r.push(nullptr); }},
    {0x88, 0, [](R& r, N) { r.push(true); }},
    {0x89, 0, [](R& r, N) { r.push(false); }},
    {'K', 1, [](R& r, N value) { r.push(value); }},
    {'M', 2, [](R& r, N value) { r.push(value); }},
    {'J', 4, [](R& r, N value) { r.push(static_cast<std::int32_t>(value)); }},
    {0x8a, 1, [](R& r, N bytes) { r.push_long(bytes); }}, // LONG1
    {'G', 8, [](R& r, N value) { r.push_real(value); }},
    {'X', 4, [](R& r, N bytes) { r.push(std::string(r.take(bytes))); }},
    {']', 0, [](R& r, N) { r.push(Json::array()); }},
    {')', 0, [](R& r, N) { r.push(Json::array()); }},
    {'}', 0, [](R& r, N) { r.push(Json::object()); }},
    {'t', 0, [](R& r, N) { r.push(r.pop_to_mark()); }},
    {0x85, 0, [](R& r, N) { r.push(r.pop_last(1)); }}, // TUPLE1
    {0x86, 0, [](R& r, N) { r.push(r.pop_last(2)); }},
    {0x87, 0, [](R& r, N) { r.push(r.pop_last(3)); }},
    {'a', 0, [](R& r, N) { r.append(r.pop_last(1)); }},
    {'e', 0, [](R& r, N) { r.append(r.pop_to_mark()); }},
    {'s', 0, [](R& r, N) { r.set(r.pop_last(2)); }},
    {'u', 0, [](R& r, N) { r.set(r.pop_to_mark()); }},
    {'q', 1, [](R& r, N index) { r.remember(index); }},
    {'r', 4, [](R& r, N index) { r.remember(index); }},
    {'h', 1, [](R& r, N index) { r.recall(index); }},
    {'j', 4, [](R& r, N index) { r.recall(index); }}};

Json PickleReader::read() {
  while (true) {
    m_opcode_at = m_at;
    const auto code = static_cast<unsigned char>(number(1));
    if (code == '.') {
      static_cast<void>(values_in(top(Json::value_t::discarded), 0));
      return std::move(m_stack.back());
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
  return PickleReader(bytes, file).read().dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace reckon::import_detail
