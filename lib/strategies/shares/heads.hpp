// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/shares/stars.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace reckon {

/// Who hands a part's sum to whom where each machine sums its own first (Plan::machine_trees): one
/// of its workers, the part's head, has the sum, and the heads are joined as machines are in Stars;
/// those that only serve are roots alone.
class Heads {
public:
  explicit Heads(const Plan& plan);

  /// The trees of each machine.
  [[nodiscard]] std::size_t ways() const { return m_head.size(); }
  /// As of Stars, for parts that go this way in each machine.
  [[nodiscard]] std::optional<std::size_t> parent(std::size_t root, std::size_t way,
                                                  std::size_t rank) const;
  [[nodiscard]] std::vector<std::size_t> children(std::size_t root, std::size_t way,
                                                  std::size_t rank) const;

private:
  [[nodiscard]] std::size_t head_of(std::size_t machine, std::size_t way) const;

  std::vector<std::size_t> m_machine, m_place;     ///< by rank: in it the number among the workers
  std::vector<std::vector<std::size_t>> m_members; ///< by machine: its workers, or who serves there
  std::vector<std::vector<std::uint64_t>> m_above; ///< Plan::machine_trees
  std::vector<std::size_t> m_head;                 ///< by way
  std::optional<Stars> m_stars;                    ///< of machines
};

} // namespace reckon
