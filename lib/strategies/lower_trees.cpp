// SPDX-License-Identifier: Apache-2.0
#include "strategies/lower_trees.hpp"

#include "strategies/parts.hpp"
#include "strategies/played_passes.hpp"
#include "strategies/tree_places.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace reckon {
namespace {

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

/// A part waits for what those so many before it in its lane waited for, too: trees keep pace, and
/// what is late holds up all that comes after it.
constexpr std::array<std::size_t, 2> k_neighbours{1, 4};

class TreeLowering {
public:
  explicit TreeLowering(const Plan& plan) : m_plan(plan), m_dtype(part_dtypes(plan)) {
    for (std::size_t t = 0; t < plan.trees.size(); ++t) {
      m_trees.push_back(tree_places(plan, t));
    }
    m_lanes = 1 + *std::max_element(plan.parts.lane.begin(), plan.parts.lane.end());
    give_slots(slot_bytes(plan));
  }

  void lower(std::uint32_t rank, RankProgram& program) {
    const bool worker = m_plan.ranks[rank].worker;
    m_back.assign(m_plan.parts.size(), k_none);
    m_sent.assign(m_plan.parts.size(), {});
    PlayedPasses passes(m_plan, program, worker);
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      const std::size_t tree = m_plan.parts.tree[p];
      const bool member = m_plan.trees[tree].up[rank] >= 0 || m_plan.trees[tree].down[rank] >= 0;
      if (member) {
        lower_part(rank, p, m_trees[tree], program.lanes[m_plan.parts.lane[p]], passes);
      }
    }
    passes.finish();
    program.buffer_bytes = {worker ? m_plan.gradient_bytes : 0, m_inbox_bytes[rank],
                            m_sum_bytes[rank]};
  }

private:
  static constexpr std::uint32_t k_none = 0xFFFFFFFFU;

  /// Each tree has a window of its own in each lane, and a slot for each part of it: at every
  /// parent for each child, and at every rank without a gradient. Windows are so long as a part's
  /// life in its tree is, `window_parts` for all trees of a lane together.
  void give_slots(std::uint64_t bytes) {
    const bool known = lives_known();
    const std::size_t trees = m_plan.trees.size(), ranks = m_plan.ranks.size();
    std::vector<std::vector<double>> parts(m_lanes, std::vector<double>(trees, 0));
    for (std::size_t p = 0; p < m_plan.parts.size(); ++p) {
      ++parts[m_plan.parts.lane[p]][m_plan.parts.tree[p]];
    }
    std::vector<std::uint64_t> slots(trees, 0); // in the lanes before
    std::vector<std::vector<std::uint32_t>> of_lane(m_lanes);
    std::vector<std::vector<std::vector<std::uint32_t>>> of_tree(
        m_lanes, std::vector<std::vector<std::uint32_t>>(trees));
    std::vector<std::vector<std::uint64_t>> windows, first;
    for (const std::vector<double>& of : parts) {
      windows.push_back(windows_of(of));
      first.push_back(slots);
      for (std::size_t t = 0; t < trees; ++t) {
        slots[t] += windows.back()[t];
      }
    }
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      const std::uint64_t lane = m_plan.parts.lane[p], tree = m_plan.parts.tree[p];
      const std::uint64_t window = windows[lane][tree];
      std::vector<std::uint32_t>&earlier = of_lane[lane], &own = of_tree[lane][known ? tree : 0];
      m_before.push_back(own.size() < window ? k_none : own[own.size() - window]);
      m_slot.push_back((first[lane][tree] + own.size() % window) * bytes);
      std::array<std::uint32_t, k_neighbours.size()>& others = m_others.emplace_back();
      for (std::size_t i = 0; i < others.size(); ++i) {
        others[i] = !known || earlier.size() < k_neighbours[i]
                        ? k_none
                        : m_before[earlier[earlier.size() - k_neighbours[i]]];
      }
      earlier.push_back(p);
      own.push_back(p);
    }
    m_inbox_bytes.assign(ranks, 0);
    m_sum_bytes.assign(ranks, 0);
    m_inbox.assign(trees, std::vector<std::uint64_t>(ranks, 0));
    m_sum = m_inbox;
    for (std::size_t t = 0; t < trees; ++t) {
      for (std::size_t r = 0; r < ranks; ++r) {
        for (const std::uint32_t child : m_trees[t].up_children[r]) {
          m_inbox[t][child] = m_inbox_bytes[r];
          m_inbox_bytes[r] += slots[t] * bytes;
        }
        if (!m_plan.ranks[r].worker &&
            (m_plan.trees[t].up[r] >= 0 || m_plan.trees[t].down[r] >= 0)) {
          m_sum[t][r] = m_sum_bytes[r];
          m_sum_bytes[r] += slots[t] * bytes;
        }
      }
    }
  }
  /// Else all trees of a lane have one window together, and parts wait for no neighbours.
  [[nodiscard]] bool lives_known() const {
    return std::ranges::all_of(m_plan.trees, [](const SumTree& t) { return t.life_seconds > 0; });
  }
  /// By tree, of a lane with so many parts of each.
  [[nodiscard]] std::vector<std::uint64_t> windows_of(const std::vector<double>& parts) const {
    if (!lives_known()) {
      return std::vector<std::uint64_t>(parts.size(),
                                        std::max<std::uint64_t>(1, m_plan.window_parts));
    }
    std::vector<double> weights = parts;
    double all = 0;
    for (std::size_t t = 0; t < weights.size(); ++t) {
      weights[t] *= m_plan.trees[t].life_seconds;
      all += weights[t];
    }
    std::vector<std::uint64_t> out;
    for (std::size_t t = 0; t < weights.size(); ++t) {
      const double window =
          all > 0 ? std::round(static_cast<double>(m_plan.window_parts) * weights[t] / all) : 1;
      out.push_back(static_cast<std::uint64_t>(std::max(1.0, std::min(window, parts[t]))));
    }
    return out;
  }

  /// Of what a child in the up tree sends.
  [[nodiscard]] Slice inbox(std::uint32_t child, std::uint32_t p) const {
    return {k_inbox_buffer, m_inbox[m_plan.parts.tree[p]][child] + m_slot[p]};
  }
  /// Where a rank has its sum, and where the whole one comes back to.
  [[nodiscard]] Slice sum(std::uint32_t rank, std::uint32_t p) const {
    return m_plan.ranks[rank].worker
               ? Slice{k_gradient_buffer, m_plan.parts.offset_bytes[p]}
               : Slice{k_sum_buffer, m_sum[m_plan.parts.tree[p]][rank] + m_slot[p]};
  }
  [[nodiscard]] std::uint32_t up_tag(std::uint32_t p, std::uint32_t from) const {
    return narrow(m_plan.parts.size() + std::uint64_t{p} * m_plan.ranks.size() + from);
  }

  void lower_part(std::uint32_t rank, std::uint32_t p, const TreePlaces& tree, LaneProgram& out,
                  PlayedPasses& passes) {
    const SumTree& parents = m_plan.trees[m_plan.parts.tree[p]];
    const bool worker = m_plan.ranks[rank].worker, root = tree.root == rank;
    const std::uint64_t bytes = m_plan.parts.bytes[p];
    const std::uint32_t before = m_before[p];
    std::vector<std::uint32_t>& depends_on = m_depends_on;
    std::vector<Slice>& operands = m_operands;
    depends_on.clear();
    operands.clear();
    if (worker) {
      operands.push_back(sum(rank, p));
      const auto wait_for = [&](std::uint32_t part) { // credit
        if (part != k_none && m_back[part] != k_none) {
          depends_on.push_back(m_back[part]);
        }
      };
      wait_for(before);
      std::ranges::for_each(m_others[p], wait_for);
      passes.add_ready(p, depends_on);
    }
    for (const std::uint32_t child : tree.up_children[rank]) {
      operands.push_back(inbox(child, p));
      depends_on.push_back(out.append_await(p, child, up_tag(p, child)));
    }
    Slice ours = operands.empty() ? sum(rank, p) : operands.front();
    std::uint32_t ready = worker || depends_on.empty() ? k_none : depends_on.front();
    // A root may give back from the slot that its only child sent to if all takes this way back.
    const bool kept = !worker && root && tree.down_children[rank] != tree.up_children[rank];
    if (operands.size() > 1 || kept) {
      if (!worker && before != k_none) { // what we sent from this slot
        depends_on.insert(depends_on.end(), m_sent[before].begin(), m_sent[before].end());
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
    std::vector<std::uint32_t>& sent = m_sent[p];
    if (!root && parents.up[rank] >= 0) {
      if (ready != k_none) {
        depends_on.assign(1, ready);
      }
      const auto to = narrow(static_cast<std::uint64_t>(parents.up[rank]));
      sent.push_back(
          out.append_write(p, to, up_tag(p, rank), ours, inbox(rank, p), bytes, depends_on));
    }
    if (!root && parents.down[rank] >= 0) {
      ready = out.append_await(p, narrow(static_cast<std::uint64_t>(parents.down[rank])), p);
      ours = sum(rank, p);
    }
    if (ready != k_none && (root || parents.down[rank] >= 0)) {
      passes.summed(p, ready);
    }
    // Alone with a part nothing is used; what used its slots before counts.
    m_back[p] = ready == k_none && before != k_none ? m_back[before] : ready;
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
  std::uint64_t m_lanes = 1;
  std::vector<std::uint32_t> m_before; ///< by part: which had its slots before, if any
  /// By part: what had the slots of its neighbours before.
  std::vector<std::array<std::uint32_t, k_neighbours.size()>> m_others;
  std::vector<std::uint64_t> m_slot;               ///< by part, in bytes: after the tree's first
  std::vector<std::vector<std::uint64_t>> m_inbox; ///< [tree][child]: of the first at its parent
  std::vector<std::vector<std::uint64_t>> m_sum;   ///< [tree][rank]: of the first
  std::vector<std::uint64_t> m_inbox_bytes, m_sum_bytes; ///< by rank
  std::vector<std::uint32_t> m_depends_on;               ///< of the op in hand
  std::vector<Slice> m_operands;
  std::vector<std::uint32_t> m_back;              ///< by part: when the sum is here
  std::vector<std::vector<std::uint32_t>> m_sent; ///< by part: our writes
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
