// SPDX-License-Identifier: Apache-2.0
#include "strategies/lower_halves.hpp"

#include "core/error.hpp"
#include "strategies/parts.hpp"
#include "strategies/tree_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint32_t k_none = 0xFFFFFFFFU;

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

/// The n-th of every worker differs from another's by less than this: its ends are those of whole
/// elements.
constexpr std::uint64_t k_nth_slack_bytes = 8;

/// Throws Error{input} where the plan's roots are not those of its collective, or it asks for more.
void check_roots(const Plan& plan) {
  const auto refuse = [&](const std::string& what) {
    fail(ErrorKind::input,
         fmt::format("the plan's collective is {}: {}", name_of(plan.collective), what));
  };
  if (plan.trees.empty() || !plan.routing.empty() || plan.torus) {
    refuse("that needs trees, and neither routing nor a torus");
  }
  if (plan.update || plan.asynchronous || plan.fixed_point || plan.passes) {
    refuse("update, asynchronous, fixed_point and passes go with all-reduce only");
  }
  if (has_root(plan.collective) &&
      (plan.root >= plan.ranks.size() || !plan.ranks[plan.root].worker)) {
    refuse(fmt::format("its root {} is no worker", plan.root));
  }
  std::uint64_t workers = 0, bytes = 0;
  for (const PlanRank& rank : plan.ranks) {
    workers += rank.worker ? 1U : 0U;
    bytes += rank.assigned_bytes;
  }
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const std::uint64_t has = plan.ranks[r].assigned_bytes;
    const std::uint64_t nth = plan.ranks[r].worker ? bytes / workers : 0;
    if (has_nths(plan.collective) &&
        (has + k_nth_slack_bytes < nth || has > nth + k_nth_slack_bytes)) {
      refuse(fmt::format("rank {} is the root of {} bytes, but its n-th are {}", r, has, nth));
    }
    if (has_root(plan.collective) && r != plan.root && has > 0) {
      refuse(fmt::format("parts have rank {} as their root, not rank {}", r, plan.root));
    }
  }
}

class HalfLowering {
public:
  explicit HalfLowering(const Plan& plan)
      : m_plan(plan), m_sums(sums(plan.collective)), m_dtype(part_dtypes(plan)),
        m_lanes(1 + *std::max_element(plan.parts.lane.begin(), plan.parts.lane.end())),
        m_window(std::max<std::uint64_t>(1, plan.window_parts)), m_slot_bytes(slot_bytes(plan)) {
    for (std::size_t t = 0; t < plan.trees.size(); ++t) {
      m_trees.push_back(tree_places(plan, t));
    }
    m_inbox.resize(plan.ranks.size());
    for (const TreePlaces& places : m_trees) {
      for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
        for (const std::uint32_t child : places.up_children[r]) {
          m_inbox[r].emplace(child, m_inbox[r].size());
        }
      }
    }
    std::vector<std::uint64_t> count(m_lanes, 0);
    for (const std::uint64_t lane : plan.parts.lane) {
      m_slot.push_back(lane * m_window + count[lane]++ % m_window);
    }
    find_turns();
  }

  void lower(std::uint32_t rank, RankProgram& program) {
    const bool worker = m_plan.ranks[rank].worker;
    m_sent.assign(m_lanes * m_window, {});
    bool passes = false; // anything on, from a slot
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      if (parent(rank, p) >= 0) {
        passes = true;
        LaneProgram& lane = program.lanes[m_plan.parts.lane[p]];
        m_sums ? lower_sum(rank, p, lane) : lower_gift(rank, p, lane);
      }
    }
    const std::uint64_t slots = m_lanes * m_window * m_slot_bytes;
    program.buffer_bytes = {worker ? m_plan.gradient_bytes : 0, m_inbox[rank].size() * slots,
                            passes && !worker ? slots : 0};
  }

private:
  /// Who is above a rank in a part's tree; -1: it takes no part.
  [[nodiscard]] std::int64_t parent(std::uint32_t rank, std::uint32_t p) const {
    const SumTree& tree = m_plan.trees[m_plan.parts.tree[p]];
    return m_sums ? tree.up[rank] : tree.down[rank];
  }
  [[nodiscard]] const TreePlaces& tree(std::uint32_t p) const {
    return m_trees[m_plan.parts.tree[p]];
  }

  /// Which part takes a slot after which: of those that a child writes at its parent, and of those
  /// in which a rank without a gradient has what it passes on.
  void find_turns() {
    using Slot = std::tuple<std::uint32_t, std::int64_t, std::uint64_t>;
    std::map<Slot, std::uint32_t> latest;
    m_next.assign(m_plan.ranks.size(), std::vector<std::uint32_t>(m_plan.parts.size(), k_none));
    m_waits.assign(m_plan.ranks.size(), std::vector<bool>(m_plan.parts.size(), false));
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      for (std::uint32_t r = 0; r < m_plan.ranks.size(); ++r) {
        if (parent(r, p) < 0 || tree(p).root == r || (!m_sums && m_plan.ranks[r].worker)) {
          continue;
        }
        const Slot slot{r, m_sums ? parent(r, p) : -1, m_slot[p]};
        const auto [before, first] = latest.try_emplace(slot, p);
        if (!first) {
          m_next[r][before->second] = p;
          m_waits[r][p] = true;
          before->second = p;
        }
      }
    }
  }

  [[nodiscard]] Slice inbox(std::uint32_t rank, std::uint32_t child, std::uint32_t p) const {
    return {k_inbox_buffer,
            (m_inbox[rank].at(child) * m_lanes * m_window + m_slot[p]) * m_slot_bytes};
  }
  [[nodiscard]] Slice own(std::uint32_t rank, std::uint32_t p) const {
    return m_plan.ranks[rank].worker ? Slice{k_gradient_buffer, m_plan.parts.offset_bytes[p]}
                                     : Slice{k_sum_buffer, m_slot[p] * m_slot_bytes};
  }
  /// Of what a rank sends for a part upward, and of its word that a slot is free for that part:
  /// nobody gets both from the same rank.
  [[nodiscard]] std::uint32_t tag_from(std::uint32_t rank, std::uint32_t p) const {
    return narrow(m_plan.parts.size() + std::uint64_t{p} * m_plan.ranks.size() + rank);
  }
  void say_free(std::uint32_t rank, std::uint32_t writer, std::uint32_t p, std::uint32_t next,
                std::span<const std::uint32_t> after, LaneProgram& out) const {
    const Slice nothing{k_gradient_buffer, 0};
    out.append_write(p, writer, tag_from(rank, next), nothing, nothing, 0, after);
  }

  void lower_sum(std::uint32_t rank, std::uint32_t p, LaneProgram& out) {
    const bool worker = m_plan.ranks[rank].worker, root = tree(p).root == rank;
    const std::uint64_t bytes = m_plan.parts.bytes[p];
    const std::vector<std::uint32_t>& children = tree(p).up_children[rank];
    std::vector<std::uint32_t> depends_on;
    std::vector<Slice> operands;
    if (worker) {
      operands.push_back(own(rank, p));
    }
    for (const std::uint32_t child : children) {
      operands.push_back(inbox(rank, child, p));
      depends_on.push_back(out.append_await(p, child, tag_from(child, p)));
    }
    Slice ours = operands.front();
    std::uint32_t done = k_none; // with what the children sent
    if (operands.size() > 1) {
      if (!worker) { // what we sent from this slot
        const std::vector<std::uint32_t>& before = m_sent[m_slot[p]];
        depends_on.insert(depends_on.end(), before.begin(), before.end());
      }
      Op op;
      op.part = p;
      op.dtype = m_dtype[p];
      op.bytes = bytes;
      op.destination = ours = own(rank, p);
      done = out.append_reduce(op, operands, depends_on);
      depends_on.assign(1, done);
    }
    if (!root) {
      const auto to = narrow(static_cast<std::uint64_t>(parent(rank, p)));
      if (m_waits[rank][p]) {
        depends_on.push_back(out.append_await(p, to, tag_from(to, p)));
      }
      const std::uint32_t sent =
          out.append_write(p, to, tag_from(rank, p), ours, inbox(to, rank, p), bytes, depends_on);
      if (operands.size() > 1) {
        m_sent[m_slot[p]].assign(1, sent);
      } else {
        done = sent;
      }
    }
    for (const std::uint32_t child : children) {
      if (const std::uint32_t next = m_next[child][p]; next != k_none) {
        say_free(rank, child, p, next, std::span(&done, 1), out);
      }
    }
  }

  void lower_gift(std::uint32_t rank, std::uint32_t p, LaneProgram& out) {
    const std::uint64_t bytes = m_plan.parts.bytes[p];
    std::vector<std::uint32_t> depends_on;
    if (tree(p).root != rank) {
      depends_on.push_back(
          out.append_await(p, narrow(static_cast<std::uint64_t>(parent(rank, p))), p));
    }
    std::vector<std::uint32_t>& before = m_sent[m_slot[p]];
    depends_on.insert(depends_on.end(), before.begin(), before.end());
    std::vector<std::uint32_t> sent;
    const std::vector<std::uint32_t>& children = tree(p).down_children[rank];
    // Begin with the one after us, so that the roots of several trees do not all write to the same.
    const auto after = std::upper_bound(children.begin(), children.end(), rank) - children.begin();
    for (std::size_t i = 0; i < children.size(); ++i) {
      const std::uint32_t child = children[(static_cast<std::size_t>(after) + i) % children.size()];
      std::vector<std::uint32_t> these = depends_on;
      if (m_waits[child][p]) {
        these.push_back(out.append_await(p, child, tag_from(child, p)));
      }
      sent.push_back(out.append_write(p, child, p, own(rank, p), own(child, p), bytes, these));
    }
    if (const std::uint32_t next = m_next[rank][p]; next != k_none) {
      say_free(rank, narrow(static_cast<std::uint64_t>(parent(rank, next))), p, next, sent, out);
    }
    if (!sent.empty()) {
      before = std::move(sent);
    }
  }

  const Plan& m_plan;
  bool m_sums;                ///< else it gives
  std::vector<DType> m_dtype; ///< by part
  std::vector<TreePlaces> m_trees;
  std::uint64_t m_lanes, m_window, m_slot_bytes;
  std::vector<std::uint64_t> m_slot; ///< by part: number of its slot
  std::vector<std::map<std::uint32_t, std::uint64_t>>
      m_inbox; ///< [rank][child]: number of its slots
  /// [rank][part]: the next part in the slot that the rank writes to (sums) or passes on from.
  std::vector<std::vector<std::uint32_t>> m_next;
  std::vector<std::vector<bool>> m_waits;         ///< [rank][part]: whether one was before
  std::vector<std::vector<std::uint32_t>> m_sent; ///< [slot]: our latest writes of its parts
};

/// Neighbouring parts with one root, inside a run, are one stretch.
std::vector<OwnedRun> owned_runs(const Plan& plan) {
  std::vector<OwnedRun> out;
  std::size_t run = 0;
  for (const std::size_t p : plan.parts.by_offset()) {
    const std::uint64_t offset = plan.parts.offset_bytes[p];
    while (run < plan.runs.size() && plan.runs[run].offset_bytes + plan.runs[run].bytes <= offset) {
      ++run;
    }
    const bool first = run == plan.runs.size() || plan.runs[run].offset_bytes == offset;
    if (!first && !out.empty() && out.back().rank == plan.parts.server[p] &&
        out.back().offset_bytes + out.back().bytes == offset) {
      out.back().bytes += plan.parts.bytes[p];
    } else {
      out.push_back({narrow(plan.parts.server[p]), offset, plan.parts.bytes[p]});
    }
  }
  return out;
}

} // namespace

Schedule lower_halves(const Plan& plan) {
  check_roots(plan);
  Schedule schedule;
  schedule.runs = plan.runs;
  schedule.collective = plan.collective;
  schedule.owned = owned_runs(plan);
  HalfLowering lowering(plan);
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
