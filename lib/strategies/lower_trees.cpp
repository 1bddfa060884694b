// SPDX-License-Identifier: Apache-2.0
#include "strategies/lower_trees.hpp"

#include "strategies/parts.hpp"
#include "strategies/played_passes.hpp"
#include "strategies/tree_places.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace reckon {
namespace {

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

class TreeLowering {
public:
  explicit TreeLowering(const Plan& plan) : m_plan(plan), m_dtype(part_dtypes(plan)) {
    for (std::size_t t = 0; t < plan.trees.size(); ++t) {
      m_trees.push_back(tree_places(plan, t));
    }
    m_lanes = 1 + *std::max_element(plan.parts.lane.begin(), plan.parts.lane.end());
    m_window = std::max<std::uint64_t>(1, plan.window_parts);
    m_slot_bytes = slot_bytes(plan);
    std::vector<std::uint64_t> count(m_lanes, 0);
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      m_position.push_back(count[plan.parts.lane[p]]++);
    }
    m_inbox.resize(plan.ranks.size());
    for (const TreePlaces& places : m_trees) {
      for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
        for (const std::uint32_t child : places.up_children[r]) {
          m_inbox[r].emplace(child, m_inbox[r].size());
        }
      }
    }
  }

  void lower(std::uint32_t rank, RankProgram& program) {
    const bool worker = m_plan.ranks[rank].worker;
    bool sums = false;
    m_back.assign(m_lanes, {});
    m_sent.assign(m_lanes, {});
    PlayedPasses passes(m_plan, program, worker);
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      const std::size_t tree = m_plan.parts.tree[p];
      const bool member = m_plan.trees[tree].up[rank] >= 0 || m_plan.trees[tree].down[rank] >= 0;
      sums = sums || member;
      const std::uint64_t lane = m_plan.parts.lane[p];
      m_back[lane].push_back(k_none);
      m_sent[lane].emplace_back();
      if (member) {
        lower_part(rank, p, m_trees[tree], program.lanes[lane], passes);
      }
    }
    passes.finish();
    const std::uint64_t slots = m_lanes * m_window * m_slot_bytes;
    program.buffer_bytes = {worker ? m_plan.gradient_bytes : 0, m_inbox[rank].size() * slots,
                            sums && !worker ? slots : 0};
  }

private:
  static constexpr std::uint32_t k_none = 0xFFFFFFFFU;

  [[nodiscard]] std::uint64_t slot(std::uint32_t p) const {
    return (m_plan.parts.lane[p] * m_window + m_position[p] % m_window) * m_slot_bytes;
  }
  [[nodiscard]] Slice inbox(std::uint32_t rank, std::uint32_t child, std::uint32_t p) const {
    return {k_inbox_buffer, m_inbox[rank].at(child) * m_lanes * m_window * m_slot_bytes + slot(p)};
  }
  /// Where a rank has its sum, and where the whole one comes back to.
  [[nodiscard]] Slice sum(std::uint32_t rank, std::uint32_t p) const {
    return m_plan.ranks[rank].worker ? Slice{k_gradient_buffer, m_plan.parts.offset_bytes[p]}
                                     : Slice{k_sum_buffer, slot(p)};
  }
  [[nodiscard]] std::uint32_t up_tag(std::uint32_t p, std::uint32_t from) const {
    return narrow(m_plan.parts.size() + std::uint64_t{p} * m_plan.ranks.size() + from);
  }

  void lower_part(std::uint32_t rank, std::uint32_t p, const TreePlaces& tree, LaneProgram& out,
                  PlayedPasses& passes) {
    const SumTree& parents = m_plan.trees[m_plan.parts.tree[p]];
    const bool worker = m_plan.ranks[rank].worker, root = tree.root == rank;
    const std::uint64_t bytes = m_plan.parts.bytes[p], lane = m_plan.parts.lane[p];
    const std::uint64_t at = m_position[p];
    std::vector<std::uint32_t>& depends_on = m_depends_on;
    std::vector<Slice>& operands = m_operands;
    depends_on.clear();
    operands.clear();
    if (worker) {
      operands.push_back(sum(rank, p));
      if (at >= m_window && m_back[lane][at - m_window] != k_none) { // credit
        depends_on.push_back(m_back[lane][at - m_window]);
      }
      passes.add_ready(p, depends_on);
    }
    for (const std::uint32_t child : tree.up_children[rank]) {
      operands.push_back(inbox(rank, child, p));
      depends_on.push_back(out.append_await(p, child, up_tag(p, child)));
    }
    Slice ours = operands.empty() ? sum(rank, p) : operands.front();
    std::uint32_t ready = worker || depends_on.empty() ? k_none : depends_on.front();
    // A root may give back from the slot that its only child sent to if all takes this way back.
    const bool kept = !worker && root && tree.down_children[rank] != tree.up_children[rank];
    if (operands.size() > 1 || kept) {
      if (!worker && at >= m_window) { // what we sent from this slot
        const std::vector<std::uint32_t>& before = m_sent[lane][at - m_window];
        depends_on.insert(depends_on.end(), before.begin(), before.end());
      }
      Op op;
      op.part = p;
      op.dtype = m_dtype[p];
      op.bytes = bytes;
      op.destination = ours = sum(rank, p);
      if (operands.size() > 1) {
        ready = out.append_reduce(op, operands, depends_on);
      } else {
        op.kind = OpKind::copy;
        op.source = operands.front();
        ready = out.append(op, depends_on);
      }
    }
    std::vector<std::uint32_t>& sent = m_sent[lane].back();
    if (!root && parents.up[rank] >= 0) {
      if (ready != k_none) {
        depends_on.assign(1, ready);
      }
      const auto to = narrow(static_cast<std::uint64_t>(parents.up[rank]));
      sent.push_back(
          out.append_write(p, to, up_tag(p, rank), ours, inbox(to, rank, p), bytes, depends_on));
    }
    if (!root && parents.down[rank] >= 0) {
      ready = out.append_await(p, narrow(static_cast<std::uint64_t>(parents.down[rank])), p);
      ours = sum(rank, p);
    }
    if (ready != k_none && (root || parents.down[rank] >= 0)) {
      passes.summed(p, ready);
    }
    // Alone with a part nothing is used; what used its slots before counts.
    m_back[lane].back() = ready == k_none && at >= m_window ? m_back[lane][at - m_window] : ready;
    const std::vector<std::uint32_t>& children = tree.down_children[rank];
    // Begin with the one after us, so that the roots of several trees do not all write to the same.
    const auto after = std::upper_bound(children.begin(), children.end(), rank) - children.begin();
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::uint32_t child = children[(static_cast<std::size_t>(after) + i) % children.size()];
      depends_on.assign(ready == k_none ? 0 : 1, ready);
      sent.push_back(out.append_write(p, child, p, ours, sum(child, p), bytes, depends_on));
    }
  }

  const Plan& m_plan;
  std::vector<DType> m_dtype; ///< by part
  std::vector<TreePlaces> m_trees;
  std::uint64_t m_lanes = 1, m_window = 1, m_slot_bytes = 0;
  std::vector<std::uint64_t> m_position;   ///< by part: of its lane
  std::vector<std::uint32_t> m_depends_on; ///< of the op in hand
  std::vector<Slice> m_operands;
  std::vector<std::map<std::uint32_t, std::uint64_t>>
      m_inbox;                                    ///< [rank][child]: number of its slots
  std::vector<std::vector<std::uint32_t>> m_back; ///< [lane][position]: when the sum is here
  std::vector<std::vector<std::vector<std::uint32_t>>> m_sent; ///< [lane][position]: our writes
};

} // namespace

Schedule lower_trees(const Plan& plan) {
  Schedule schedule;
  schedule.runs = plan.runs;
  TreeLowering lowering(plan);
  schedule.ranks.resize(plan.ranks.size());
  const std::uint64_t lanes = 1 + *std::max_element(plan.parts.lane.begin(), plan.parts.lane.end());
  for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
    schedule.worker.push_back(plan.ranks[rank].worker);
    schedule.ranks[rank].lanes.resize(lanes);
    lowering.lower(rank, schedule.ranks[rank]);
  }
  return schedule;
}

} // namespace reckon
