// SPDX-License-Identifier: Apache-2.0
#include "run/delays.hpp"

#include <algorithm>
#include <functional>

namespace reckon {

TimedDelays::TimedDelays(const LaneProgram& program) : m_program(program) {
  m_ends.reserve(program.ops().size());
}

void TimedDelays::start(std::uint32_t op, std::int64_t since_ns) noexcept {
  m_ends.emplace_back(since_ns + m_program.ops()[op].duration_ns, op); // capacity was reserved
  std::push_heap(m_ends.begin(), m_ends.end(), std::greater<>());
}

std::optional<Delays::Over> TimedDelays::next_over(std::int64_t now_ns) noexcept {
  if (m_ends.empty() || m_ends.front().first > now_ns) {
    return std::nullopt;
  }
  const auto [end, op] = m_ends.front();
  std::pop_heap(m_ends.begin(), m_ends.end(), std::greater<>());
  m_ends.pop_back();
  return Over{op, end};
}

std::optional<std::int64_t> TimedDelays::ask_again_ns(std::int64_t /*now_ns*/) const noexcept {
  return m_ends.empty() ? std::nullopt : std::optional(m_ends.front().first);
}

} // namespace reckon
