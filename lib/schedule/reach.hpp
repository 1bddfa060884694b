// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace reckon {

/// A graph without circles, its nodes numbered in a topological order: append them one by one.
class OrderedGraph {
public:
  /// An edge from `before`, appended earlier, to the node that append() adds next.
  void add_predecessor(std::uint32_t before) { m_before.push_back(before); }
  void append() { m_begin.push_back(m_before.size()); }

  [[nodiscard]] std::size_t size() const { return m_begin.size() - 1; }
  [[nodiscard]] std::span<const std::uint32_t> predecessors(std::size_t node) const {
    return std::span<const std::uint32_t>(m_before).subspan(m_begin[node],
                                                            m_begin[node + 1] - m_begin[node]);
  }

private:
  std::vector<std::size_t> m_begin{0};
  std::vector<std::uint32_t> m_before;
};

/// Whether a path leads from one node to another.
struct WayQuestion {
  std::uint32_t from = 0, to = 0;
  std::uint32_t about = 0; ///< the caller's own number
};

/// The questions whose answer is no, ordered by `from`; a path from a node to itself needs a step,
/// so there is no such path. Takes memory and time for 512 nodes at a time and for those after them
/// up to the last one asked for: where the nodes of a question are near each other in the order,
/// both grow with the nodes; else the time grows with their square / 512.
[[nodiscard]] std::vector<WayQuestion> without_way(const OrderedGraph& graph,
                                                   std::vector<WayQuestion> questions);

} // namespace reckon
