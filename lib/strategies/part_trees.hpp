// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "strategies/shares/heads.hpp"
#include "strategies/shares/stars.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace reckon {

/// The trees that a plan's parts go up and down. A plan that lists none has one for each rank that
/// sums: in a ring the chain of all workers that ends at that rank, else its star (Stars); where
/// machines sum their own first, one star for each rank and way to do that (Heads). Holds a
/// reference to the plan.
class PartTrees {
public:
  /// Throws Error{input} when a listed tree does not hold every worker that the collective uses
  /// once, or some rank hands on data that it cannot have.
  explicit PartTrees(const Plan& plan);

  [[nodiscard]] bool listed() const { return !m_plan.trees.empty(); }
  [[nodiscard]] bool chains() const { return !listed() && !m_stars && !m_heads; }

  [[nodiscard]] std::size_t count() const {
    return listed() ? m_plan.trees.size() : m_plan.ranks.size() * ways();
  }
  /// The number of a part's tree.
  [[nodiscard]] std::size_t of(std::size_t part) const {
    return listed()  ? m_plan.parts.tree[part]
           : m_heads ? m_plan.parts.server[part] * ways() + m_plan.parts.tree[part]
                     : m_plan.parts.server[part];
  }
  /// Who is above a rank in a tree, up or down: at the root itself; -1: it takes no part.
  [[nodiscard]] std::int64_t up(std::uint32_t rank, std::size_t tree) const;
  [[nodiscard]] std::int64_t down(std::uint32_t rank, std::size_t tree) const;
  /// In order.
  [[nodiscard]] std::vector<std::uint32_t> up_children(std::uint32_t rank, std::size_t tree) const;
  [[nodiscard]] std::vector<std::uint32_t> down_children(std::uint32_t rank,
                                                         std::size_t tree) const;

private:
  using Children = std::vector<std::vector<std::uint32_t>>; // by rank
  [[nodiscard]] std::size_t ways() const { return m_heads ? m_heads->ways() : 1; }
  [[nodiscard]] std::uint32_t in_ring(std::size_t rank, std::size_t places_on) const;

  const Plan& m_plan;
  std::optional<Stars> m_stars;                         ///< neither in a ring nor of listed trees
  std::optional<Heads> m_heads;                         ///< instead, where machines sum first
  std::vector<Children> m_up_children, m_down_children; ///< of listed trees
  std::vector<std::uint32_t> m_ring, m_places;          ///< workers in order; by rank: places in it
};

} // namespace reckon
