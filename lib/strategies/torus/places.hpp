// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace reckon {

/// The place of each rank in a torus of L x V x H nodes: rank l + L (v + V h).
class TorusPlaces {
public:
  static constexpr std::size_t k_dimensions = 3; ///< 0 local, 1 vertical, 2 horizontal
  static constexpr std::array<const char*, k_dimensions> k_names{"local", "vertical", "horizontal"};

  explicit TorusPlaces(const std::array<std::uint64_t, k_dimensions>& nodes) : m_nodes(nodes) {}

  [[nodiscard]] std::uint64_t nodes(std::size_t dimension) const { return m_nodes[dimension]; }
  [[nodiscard]] std::uint64_t size() const { return m_nodes[0] * m_nodes[1] * m_nodes[2]; }
  /// The rank's place in its ring of a dimension.
  [[nodiscard]] std::uint64_t at(std::uint64_t rank, std::size_t dimension) const {
    return rank / stride(dimension) % m_nodes[dimension];
  }
  /// The next rank in that ring, forward or backward.
  [[nodiscard]] std::uint32_t next(std::uint64_t rank, std::size_t dimension, bool backward) const {
    const std::uint64_t n = m_nodes[dimension], here = at(rank, dimension);
    const std::uint64_t there = (here + (backward ? n - 1 : 1)) % n;
    return static_cast<std::uint32_t>(rank + there * stride(dimension) - here * stride(dimension));
  }
  /// Steps in that direction from one place of a ring to another.
  [[nodiscard]] std::uint64_t steps(std::uint64_t from, std::uint64_t to, std::size_t dimension,
                                    bool backward) const {
    const std::uint64_t n = m_nodes[dimension];
    return backward ? (from + n - to) % n : (to + n - from) % n;
  }

private:
  [[nodiscard]] std::uint64_t stride(std::size_t dimension) const {
    return dimension == 0 ? 1 : dimension == 1 ? m_nodes[0] : m_nodes[0] * m_nodes[1];
  }
  std::array<std::uint64_t, k_dimensions> m_nodes;
};

} // namespace reckon
