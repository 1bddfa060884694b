// SPDX-License-Identifier: Apache-2.0
#include "documents/repeats.hpp"

#include "core/json.hpp"

namespace reckon::documents {
namespace {

/// Fewer numbers are shorter, and plainer, as they are.
constexpr std::size_t k_least_count = 6;
constexpr unsigned k_table_bits = 16;
constexpr std::uint64_t k_base = 0x9E3779B97F4A7C15ULL; // odd: no difference is lost

} // namespace

Json RepeatWriter::elements(const std::vector<std::int64_t>& numbers) {
  std::size_t at = m_numbers.size();
  append(numbers);
  Json out = Json::array();
  while (at < m_numbers.size()) {
    if (const Repeat repeat = longest(at); repeat.count >= k_least_count) {
      out.push_back({repeat.count, repeat.back, m_numbers[at] - m_numbers[at - repeat.back]});
      at += repeat.count;
    } else {
      out.push_back(m_numbers[at]);
      ++at;
    }
  }
  return out;
}

void RepeatWriter::append(const std::vector<std::int64_t>& numbers) {
  if (m_numbers.empty()) {
    for (Seen& seen : m_seen) {
      seen.places.assign(std::size_t{1} << k_table_bits, 0);
      for (std::size_t i = 0; i < seen.differences; ++i) {
        seen.power *= k_base;
      }
    }
  }
  for (const std::int64_t number : numbers) {
    const std::int64_t difference = m_numbers.empty() ? number : number - m_numbers.back();
    m_hashes.push_back((m_hashes.empty() ? 0 : m_hashes.back() * k_base) +
                       static_cast<std::uint64_t>(difference) + 1);
    m_numbers.push_back(number);
  }
}

/// The differences are those to the numbers after `at`.
std::uint32_t& RepeatWriter::place(Seen& seen, std::size_t at) const {
  const std::uint64_t hash = m_hashes[at + seen.differences] - m_hashes[at] * seen.power;
  return seen.places[(hash * k_base) >> (64 - k_table_bits)];
}

RepeatWriter::Repeat RepeatWriter::longest(std::size_t at) {
  Repeat best;
  const auto consider = [&](std::size_t from) {
    const std::int64_t step = m_numbers[at] - m_numbers[from];
    std::size_t count = 0;
    while (at + count < m_numbers.size() &&
           m_numbers[at + count] - m_numbers[from + count] == step) {
      ++count;
    }
    if (count > best.count || (count == best.count && at - from < best.back)) {
      best = {count, at - from};
    }
  };
  for (Seen& seen : m_seen) {
    for (; seen.next < at && seen.next + seen.differences < m_numbers.size(); ++seen.next) {
      place(seen, seen.next) = static_cast<std::uint32_t>(seen.next + 1);
    }
    if (at + seen.differences < m_numbers.size()) {
      if (const std::uint32_t from = place(seen, at); from != 0) {
        consider(from - 1);
      }
    }
  }
  if (at > 0) {
    consider(at - 1);
  }
  return best;
}

JsonView source_of(const JsonView& list, std::size_t i) {
  for (const JsonView& element : list.elements()) {
    const std::size_t count =
        element.raw().is_array() ? element.raw().front().get<std::size_t>() : 1;
    if (i < count) {
      return element;
    }
    i -= count;
  }
  return list;
}

} // namespace reckon::documents
