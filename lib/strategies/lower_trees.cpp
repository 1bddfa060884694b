// SPDX-License-Identifier: Apache-2.0
#include "strategies/lowerings.hpp"
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
      : m_plan(plan), m_trees(trees), m_paced_roots(!plan.trees.empty()),
        m_dtype(part_dtypes(plan)) {}

  void lower(std::uint32_t rank, RankProgram& program) {
    bool sums = false;
    m_back.assign(m_plan.parts.size(), k_no_op);
    m_latest.assign(m_trees.lanes(), k_no_op);
    m_sent.assign(m_plan.parts.size(), {});
    PlayedPasses passes(m_plan, program, m_plan.ranks[rank].worker);
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      if (m_trees.up(rank, p) >= 0 || m_trees.down(rank, p) >= 0) {
        sums = true;
        lower_part(rank, p, program.lanes[m_plan.parts.lane[p]], passes);
      }
    }
    passes.finish();
    program.buffer_bytes = m_trees.buffer_bytes(rank, sums);
  }

private:
  void lower_part(std::uint32_t rank, std::uint32_t p, LaneProgram& out, PlayedPasses& passes) {
    const std::int64_t up = m_trees.up(rank, p), down = m_trees.down(rank, p);
    const std::vector<std::uint32_t> children = m_trees.up_children(rank, p);
    const bool worker = m_plan.ranks[rank].worker, root = m_trees.root(p) == rank;
    const std::uint64_t bytes = m_plan.parts.bytes[p];
    const std::uint32_t before = m_trees.before(p);
    std::vector<std::uint32_t>& depends_on = m_depends_on;
    std::vector<Slice>& operands = m_operands;
    depends_on.clear();
    operands.clear();
    if (worker) {
      operands.push_back(m_trees.own(rank, p));
      const auto wait_for = [&](std::uint32_t part) { // credit
        if (part != k_no_op && m_back[part] != k_no_op &&
            std::ranges::find(depends_on, m_back[part]) == depends_on.end()) {
          depends_on.push_back(m_back[part]);
        }
      };
      if (!root || m_paced_roots) {
        wait_for(before);
        std::ranges::for_each(m_trees.pace(p), wait_for);
      }
      passes.add_ready(p, depends_on);
    }
    for (const std::uint32_t child : children) {
      operands.push_back(m_trees.inbox(child, p));
      depends_on.push_back(out.append_await(p, child, m_trees.tag(p, child)));
    }
    Slice ours = operands.empty() ? m_trees.own(rank, p) : operands.front();
    std::uint32_t ready = worker || depends_on.empty() ? k_no_op : depends_on.front();
    // A root may give back from the slot that its only child sent to if all takes this way back,
    // and nobody steps it.
    const bool kept =
        !worker && root && (m_plan.update || m_trees.down_children(rank, p) != children);
    if (operands.size() > 1 || kept) {
      if (!worker && before != k_no_op) { // what we sent from this slot
        depends_on.insert(depends_on.end(), m_sent[before].begin(), m_sent[before].end());
      }
      const Op op{.stores = worker ? Stores::cached : m_plan.stores, // a worker's is an operand
                  .dtype = m_dtype[p],
                  .part = p,
                  .destination = m_trees.own(rank, p),
                  .bytes = bytes};
      ours = op.destination;
      ready = out.append_reduce(op, operands, depends_on);
    }
    std::vector<std::uint32_t>& sent = m_sent[p];
    if (!root && up >= 0) {
      if (ready != k_no_op) {
        depends_on.assign(1, ready);
      }
      const auto to = narrow(static_cast<std::uint64_t>(up));
      sent.push_back(out.append_write(p, to, m_trees.tag(p, rank), ours, m_trees.inbox(rank, p),
                                      bytes, depends_on));
    }
    if (!root && down >= 0) {
      ready = out.append_await(p, narrow(static_cast<std::uint64_t>(down)), p);
      ours = m_trees.own(rank, p);
    }
    if (ready != k_no_op && (root || down >= 0)) {
      passes.summed(p, ready);
    }
    note_back(p, ready, worker && root && !m_paced_roots);
    for (const std::uint32_t child : m_trees.receivers(rank, p)) {
      depends_on.assign(ready == k_no_op ? 0 : 1, ready);
      sent.push_back(out.append_write(p, child, p, ours, m_trees.own(child, p), bytes, depends_on));
    }
  }

  /// When a part's sum is here. Alone with a part nothing is used; what used its slots before
  /// counts. A root that waits for nothing has nothing back: what came before counts.
  void note_back(std::uint32_t p, std::uint32_t ready, bool waited_for_nothing) {
    const std::uint32_t before = m_trees.before(p);
    std::uint32_t& latest = m_latest[m_plan.parts.lane[p]];
    m_back[p] = waited_for_nothing                      ? latest
                : ready == k_no_op && before != k_no_op ? m_back[before]
                                                        : ready;
    latest = m_back[p];
  }

  const Plan& m_plan;
  const PlanTrees& m_trees;
  /// A worker that is the root of a listed tree waits as those do that write into others' slots.
  bool m_paced_roots;
  std::vector<DType> m_dtype;              ///< by part
  std::vector<std::uint32_t> m_depends_on; ///< of the op in hand
  std::vector<Slice> m_operands;
  std::vector<std::uint32_t> m_back;              ///< by part: when the sum is here
  std::vector<std::uint32_t> m_latest;            ///< by lane: of these the last
  std::vector<std::vector<std::uint32_t>> m_sent; ///< by part: our writes
};

} // namespace

Schedule lower_trees(const Plan& plan) {
  const PlanTrees trees(plan, PlanTrees::Windows::of_trees);
  TreeLowering lowering(plan, trees);
  return lower_ranks(plan, trees.lanes(), [&](std::uint32_t rank, RankProgram& program) {
    lowering.lower(rank, program);
  });
}

} // namespace reckon
