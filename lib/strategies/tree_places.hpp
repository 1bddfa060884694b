// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace reckon {

/// What a lowered plan has in a rank's memory beside its gradient (buffer 0).
inline constexpr std::uint32_t k_inbox_buffer = 1; ///< what others sent to be summed
inline constexpr std::uint32_t k_sum_buffer = 2; ///< of a rank without a gradient: sums, or what it
                                                 ///< passes on
/// Of a place for one part: the plan's part_bytes in whole pages (BytePS, section 6.2).
[[nodiscard]] std::uint64_t slot_bytes(const Plan& plan);

inline constexpr std::uint32_t k_no_op = 0xFFFFFFFFU;

/// Ranks, parts and tags of plans are 64 bits long, those of schedules 32.
[[nodiscard]] inline std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

/// A tree as its ranks see it.
struct TreePlaces {
  std::uint32_t root = 0;
  std::vector<std::vector<std::uint32_t>> up_children, down_children; ///< by rank
};

/// Of plan.trees[number]. Throws Error{input} when it does not hold every worker once, as far as
/// the collective uses it, or some rank hands on what it cannot have.
[[nodiscard]] TreePlaces tree_places(const Plan& plan, std::size_t number);

/// What all lowerings of a plan's trees have in common: who is where in the tree of each part, and
/// where its bytes lie. Every child has at its parent as many slots in each lane as the window has
/// parts, and so has a rank without a gradient for its sums. Holds a reference to the plan.
class PlanTrees {
public:
  /// Throws as tree_places().
  explicit PlanTrees(const Plan& plan);

  [[nodiscard]] const TreePlaces& tree(std::uint32_t p) const {
    return m_trees[m_plan.parts.tree[p]];
  }
  [[nodiscard]] std::uint64_t lanes() const { return m_lanes; }
  [[nodiscard]] std::uint64_t window() const { return m_window; }
  /// Of a part among those of its lane.
  [[nodiscard]] std::uint64_t position(std::uint32_t p) const { return m_position[p]; }
  /// Number of a part's slot, below lanes() x window().
  [[nodiscard]] std::uint64_t slot(std::uint32_t p) const {
    return m_plan.parts.lane[p] * m_window + m_position[p] % m_window;
  }
  /// Where `child` writes a part at its parent.
  [[nodiscard]] Slice inbox(std::uint32_t rank, std::uint32_t child, std::uint32_t p) const;
  /// Where a rank has its sum of a part, and where the whole one comes to.
  [[nodiscard]] Slice own(std::uint32_t rank, std::uint32_t p) const;
  /// Of what `from` writes for a part beside the sum that comes back, whose tag is the part.
  [[nodiscard]] std::uint32_t tag(std::uint32_t p, std::uint32_t from) const;
  /// Those to which a rank gives a part, beginning with the one after it, so that the roots of
  /// several trees do not all write to the same.
  [[nodiscard]] std::vector<std::uint32_t> receivers(std::uint32_t rank, std::uint32_t p) const;
  /// `keeps`: whether the rank keeps anything in its slots for sums.
  [[nodiscard]] std::vector<std::uint64_t> buffer_bytes(std::uint32_t rank, bool keeps) const;

private:
  const Plan& m_plan;
  std::vector<TreePlaces> m_trees;
  std::uint64_t m_lanes, m_window, m_slot_bytes;
  std::vector<std::uint64_t> m_position; ///< by part
  /// [rank][child]: number of the child's slots.
  std::vector<std::map<std::uint32_t, std::uint64_t>> m_inbox;
};

/// The schedule of a plan of trees whose ranks `lowering.lower(rank, program)` fills.
template <class Lowering>
[[nodiscard]] Schedule lower_ranks(const Plan& plan, std::uint64_t lanes, Lowering& lowering) {
  Schedule schedule;
  schedule.runs = plan.runs;
  schedule.ranks.resize(plan.ranks.size());
  for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
    schedule.worker.push_back(plan.ranks[rank].worker);
    schedule.ranks[rank].lanes.resize(lanes);
    lowering.lower(rank, schedule.ranks[rank]);
  }
  return schedule;
}

} // namespace reckon
