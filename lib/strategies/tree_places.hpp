// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/interrupt.hpp"
#include "documents/plan.hpp"
#include "schedule/schedule.hpp"
#include "strategies/part_trees.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reckon {

/// The buffers of a lowered plan in a rank's memory beside its gradient (buffer 0).
inline constexpr std::uint32_t k_inbox_buffer = 1; ///< data from others that are to be summed
inline constexpr std::uint32_t k_sum_buffer = 2; ///< of a rank without a gradient: sums, or what it
                                                 ///< passes on
/// Bytes of a place for one part: the plan's longest part in whole pages (BytePS, section 6.2).
[[nodiscard]] std::uint64_t slot_bytes(const Plan& plan);

inline constexpr std::uint32_t k_no_op = 0xFFFFFFFFU;

/// Ranks, parts and tags of plans are 64 bits long, those of schedules 32.
[[nodiscard]] inline std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

/// Where a worker's gradient of a part lies.
[[nodiscard]] inline Slice gradient_of(const Plan& plan, std::size_t part) {
  return {k_gradient_buffer, plan.parts.offset_bytes[part]};
}

/// The common part of all lowerings of a plan's trees: the ranks in the tree of each part, and the
/// place of its bytes. A window of parts has slots in each lane: every child at its parent, and a
/// rank without a gradient for its sums. Holds a reference to the plan.
class PlanTrees {
public:
  enum class Windows {
    of_lanes, ///< all trees of a lane have one, of window_parts, and share its slots
    /// Each tree has slots of its own. Listed trees share window_parts by their shares and by the
    /// life of a part in them (SumTree::life_seconds); where lives are unknown as of_lanes. Each
    /// chain of a ring has window_parts; stars have the slots that a lane's window of window_parts
    /// needs.
    of_trees
  };
  /// Throws as PartTrees, and Error{input} where the plan has more parts than tags can name.
  PlanTrees(const Plan& plan, Windows windows);

  [[nodiscard]] std::uint32_t root(std::uint32_t p) const { return narrow(m_plan.parts.server[p]); }
  /// As PartTrees, of a part's tree.
  [[nodiscard]] std::int64_t up(std::uint32_t rank, std::uint32_t p) const {
    return m_trees.up(rank, m_trees.of(p));
  }
  [[nodiscard]] std::int64_t down(std::uint32_t rank, std::uint32_t p) const {
    return m_trees.down(rank, m_trees.of(p));
  }
  [[nodiscard]] std::vector<std::uint32_t> up_children(std::uint32_t rank, std::uint32_t p) const {
    return m_trees.up_children(rank, m_trees.of(p));
  }
  [[nodiscard]] std::vector<std::uint32_t> down_children(std::uint32_t rank,
                                                         std::uint32_t p) const {
    return m_trees.down_children(rank, m_trees.of(p));
  }
  [[nodiscard]] std::uint64_t lanes() const { return m_lanes; }
  /// The part that had a part's slots before; k_no_op: no part.
  [[nodiscard]] std::uint32_t before(std::uint32_t p) const { return m_before[p]; }
  /// Other parts that a worker waits for before it sends a part, so that late data hold up
  /// everything after them: the last that is out of the lane's window; where listed trees have
  /// windows of their own, those that had the slots of the first and the fourth part before it in
  /// the lane.
  [[nodiscard]] const std::array<std::uint32_t, 2>& pace(std::uint32_t p) const {
    return m_pace[p];
  }
  /// Number of a part's slot, below slots(); of_lanes.
  [[nodiscard]] std::uint64_t slot(std::uint32_t p) const { return m_slot[p]; }
  [[nodiscard]] std::uint64_t slots() const { return m_slots.front(); }
  /// The slot at its parent that `child` writes a part to.
  [[nodiscard]] Slice inbox(std::uint32_t child, std::uint32_t p) const;
  /// The place of a rank's sum of a part, and of the whole sum.
  [[nodiscard]] Slice own(std::uint32_t rank, std::uint32_t p) const;
  /// Tag of the writes by `from` for a part other than the returning sum, whose tag is the part.
  [[nodiscard]] std::uint32_t tag(std::uint32_t p, std::uint32_t from) const;
  /// The ranks that a rank gives a part to, beginning with the one after it, so that the roots of
  /// several trees do not all write to the same rank.
  [[nodiscard]] std::vector<std::uint32_t> receivers(std::uint32_t rank, std::uint32_t p) const;
  /// `keeps`: whether the rank keeps anything in its slots for sums.
  [[nodiscard]] std::vector<std::uint64_t> buffer_bytes(std::uint32_t rank, bool keeps) const;

private:
  void number_slots();
  void place_slots();
  using ByLane = std::vector<std::vector<std::uint64_t>>;
  [[nodiscard]] ByLane most_in_window() const;
  [[nodiscard]] ByLane lengths() const;
  [[nodiscard]] std::vector<std::uint64_t> by_life(const std::vector<double>& parts) const;

  const Plan& m_plan;
  PartTrees m_trees;
  std::uint64_t m_lanes = 1, m_window, m_slot_bytes;
  bool m_lives;                       ///< windows are as long as parts live in a tree
  bool m_by_tree;                     ///< trees have slots of their own
  std::vector<std::uint64_t> m_slots; ///< of all lanes; by tree, or of all trees
  std::vector<std::uint32_t> m_before;
  std::vector<std::array<std::uint32_t, 2>> m_pace;
  std::vector<std::uint64_t> m_slot;               ///< by part
  std::vector<std::vector<std::uint64_t>> m_inbox; ///< [tree][child]: bytes before it at its parent
  std::vector<std::vector<std::uint64_t>> m_sum;   ///< [tree][rank]: bytes before it
  std::vector<std::uint64_t> m_inbox_bytes, m_sum_bytes; ///< by rank
};

/// The schedule of a plan whose ranks' programs lower_rank(rank, program) fills.
/// Throws Error{operation} when interrupted().
template <class LowerRank>
[[nodiscard]] Schedule lower_ranks(const Plan& plan, std::uint64_t lanes,
                                   const LowerRank& lower_rank) {
  Schedule schedule;
  schedule.runs = plan.runs;
  schedule.ranks.resize(plan.ranks.size());
  for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
    stop_if_interrupted();
    schedule.worker.push_back(plan.ranks[rank].worker);
    schedule.ranks[rank].lanes.resize(lanes);
    lower_rank(rank, schedule.ranks[rank]);
  }
  return schedule;
}

} // namespace reckon
