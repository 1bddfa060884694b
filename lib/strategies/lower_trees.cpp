// SPDX-License-Identifier: Apache-2.0
#include "strategies/lower_trees.hpp"

#include "strategies/parts.hpp"
#include "strategies/played_passes.hpp"
#include "strategies/tree_places.hpp"

#include <algorithm>
#include <utility>

namespace reckon {
namespace {

class TreeLowering {
public:
  TreeLowering(const Plan& plan, const PlanTrees& trees)
      : m_plan(plan), m_trees(trees), m_window(trees.window()), m_dtype(part_dtypes(plan)) {}

  void lower(std::uint32_t rank, RankProgram& program) {
    const bool worker = m_plan.ranks[rank].worker;
    bool sums = false;
    m_back.assign(m_trees.lanes(), {});
    m_sent.assign(m_trees.lanes(), {});
    PlayedPasses passes(m_plan, program, worker);
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      const SumTree& tree = m_plan.trees[m_plan.parts.tree[p]];
      const bool member = tree.up[rank] >= 0 || tree.down[rank] >= 0;
      sums = sums || member;
      const std::uint64_t lane = m_plan.parts.lane[p];
      m_back[lane].push_back(k_no_op);
      m_sent[lane].emplace_back();
      if (member) {
        lower_part(rank, p, m_trees.tree(p), program.lanes[lane], passes);
      }
    }
    passes.finish();
    program.buffer_bytes = m_trees.buffer_bytes(rank, sums);
  }

private:
  void lower_part(std::uint32_t rank, std::uint32_t p, const TreePlaces& tree, LaneProgram& out,
                  PlayedPasses& passes) {
    const SumTree& parents = m_plan.trees[m_plan.parts.tree[p]];
    const bool worker = m_plan.ranks[rank].worker, root = tree.root == rank;
    const std::uint64_t bytes = m_plan.parts.bytes[p], lane = m_plan.parts.lane[p];
    const std::uint64_t at = m_trees.position(p);
    std::vector<std::uint32_t>& depends_on = m_depends_on;
    std::vector<Slice>& operands = m_operands;
    depends_on.clear();
    operands.clear();
    if (worker) {
      operands.push_back(m_trees.own(rank, p));
      if (at >= m_window && m_back[lane][at - m_window] != k_no_op) { // credit
        depends_on.push_back(m_back[lane][at - m_window]);
      }
      passes.add_ready(p, depends_on);
    }
    for (const std::uint32_t child : tree.up_children[rank]) {
      operands.push_back(m_trees.inbox(rank, child, p));
      depends_on.push_back(out.append_await(p, child, m_trees.tag(p, child)));
    }
    Slice ours = operands.empty() ? m_trees.own(rank, p) : operands.front();
    std::uint32_t ready = worker || depends_on.empty() ? k_no_op : depends_on.front();
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
      op.destination = ours = m_trees.own(rank, p);
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
      if (ready != k_no_op) {
        depends_on.assign(1, ready);
      }
      const auto to = narrow(static_cast<std::uint64_t>(parents.up[rank]));
      sent.push_back(out.append_write(p, to, m_trees.tag(p, rank), ours, m_trees.inbox(to, rank, p),
                                      bytes, depends_on));
    }
    if (!root && parents.down[rank] >= 0) {
      ready = out.append_await(p, narrow(static_cast<std::uint64_t>(parents.down[rank])), p);
      ours = m_trees.own(rank, p);
    }
    if (ready != k_no_op && (root || parents.down[rank] >= 0)) {
      passes.summed(p, ready);
    }
    // Alone with a part nothing is used; what used its slots before counts.
    m_back[lane].back() = ready == k_no_op && at >= m_window ? m_back[lane][at - m_window] : ready;
    for (const std::uint32_t child : m_trees.receivers(rank, p)) {
      depends_on.assign(ready == k_no_op ? 0 : 1, ready);
      sent.push_back(out.append_write(p, child, p, ours, m_trees.own(child, p), bytes, depends_on));
    }
  }

  const Plan& m_plan;
  const PlanTrees& m_trees;
  std::uint64_t m_window;
  std::vector<DType> m_dtype;              ///< by part
  std::vector<std::uint32_t> m_depends_on; ///< of the op in hand
  std::vector<Slice> m_operands;
  std::vector<std::vector<std::uint32_t>> m_back; ///< [lane][position]: when the sum is here
  std::vector<std::vector<std::vector<std::uint32_t>>> m_sent; ///< [lane][position]: our writes
};

} // namespace

Schedule lower_trees(const Plan& plan) {
  const PlanTrees trees(plan);
  TreeLowering lowering(plan, trees);
  return lower_ranks(plan, trees.lanes(), lowering);
}

} // namespace reckon
