// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace reckon {

/// What is known of a buffer's bytes, piecewise constant.
template <class Known>
class Pieces {
public:
  explicit Pieces(std::uint64_t bytes, Known initial) : m_bytes(bytes) {
    m_pieces.emplace(0, std::move(initial));
  }

  void set(std::uint64_t begin, std::uint64_t end, const Known& content) {
    split(begin);
    split(end);
    const auto first = m_pieces.find(begin);
    m_pieces.erase(std::next(first), m_pieces.lower_bound(end));
    first->second = content;
  }
  /// Calls f(content) for the pieces of [begin, end), which it may change.
  template <class F>
  void change(std::uint64_t begin, std::uint64_t end, F f) {
    split(begin);
    split(end);
    for (auto it = m_pieces.find(begin); it != m_pieces.end() && it->first < end; ++it) {
      f(it->second);
    }
  }
  /// Calls f(begin, end, content) for the pieces of [begin, end), which must not be empty.
  template <class F>
  void visit(std::uint64_t begin, std::uint64_t end, F f) const {
    for (auto it = std::prev(m_pieces.upper_bound(begin)); it != m_pieces.end() && it->first < end;
         ++it) {
      const auto next = std::next(it);
      f(std::max(begin, it->first), std::min(end, next == m_pieces.end() ? m_bytes : next->first),
        it->second);
    }
  }

  [[nodiscard]] std::uint64_t bytes() const { return m_bytes; }

private:
  void split(std::uint64_t at) {
    if (at >= m_bytes) {
      return;
    }
    const auto it = std::prev(m_pieces.upper_bound(at));
    if (it->first != at) {
      m_pieces.emplace_hint(std::next(it), at, Known(it->second));
    }
  }
  std::map<std::uint64_t, Known> m_pieces;
  std::uint64_t m_bytes = 0;
};

/// f(begin, end, known) over the pieces of [begin, end), which f may change.
template <class Known, class F>
void for_each_piece(const Pieces<Known>& of, std::uint64_t begin, std::uint64_t end, F f) {
  std::vector<std::tuple<std::uint64_t, std::uint64_t, Known>> pieces;
  of.visit(begin, end, [&](std::uint64_t b, std::uint64_t e, const Known& known) {
    pieces.emplace_back(b, e, known);
  });
  for (auto& [b, e, known] : pieces) {
    f(b, e, known);
  }
}

} // namespace reckon
