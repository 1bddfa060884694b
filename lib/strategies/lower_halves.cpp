// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "strategies/lowerings.hpp"
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
  HalfLowering(const Plan& plan, const PlanTrees& trees)
      : m_plan(plan), m_trees(trees), m_sums(sums(plan.collective)), m_dtype(part_dtypes(plan)) {
    find_turns();
  }

  void lower(std::uint32_t rank, RankProgram& program) {
    m_sent.assign(m_trees.slots(), {});
    bool passes = false; // anything on, from a slot
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      if (parent(rank, p) >= 0) {
        passes = true;
        LaneProgram& lane = program.lanes[m_plan.parts.lane[p]];
        m_sums ? lower_sum(rank, p, lane) : lower_gift(rank, p, lane);
      }
    }
    program.buffer_bytes = m_trees.buffer_bytes(rank, passes);
  }

private:
  /// Who is above a rank in a part's tree; -1: it takes no part.
  [[nodiscard]] std::int64_t parent(std::uint32_t rank, std::uint32_t p) const {
    return m_sums ? m_trees.up(rank, p) : m_trees.down(rank, p);
  }
  /// Which part takes a slot after which: of those that a child writes at its parent, and of those
  /// in which a rank without a gradient has what it passes on.
  void find_turns() {
    using Slot = std::tuple<std::uint32_t, std::int64_t, std::uint64_t>;
    std::map<Slot, std::uint32_t> latest;
    m_next.assign(m_plan.ranks.size(), std::vector<std::uint32_t>(m_plan.parts.size(), k_no_op));
    m_waits.assign(m_plan.ranks.size(), std::vector<bool>(m_plan.parts.size(), false));
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      for (std::uint32_t r = 0; r < m_plan.ranks.size(); ++r) {
        if (parent(r, p) < 0 || m_trees.root(p) == r || (!m_sums && m_plan.ranks[r].worker)) {
          continue;
        }
        const Slot slot{r, m_sums ? parent(r, p) : -1, m_trees.slot(p)};
        const auto [before, first] = latest.try_emplace(slot, p);
        if (!first) {
          m_next[r][before->second] = p;
          m_waits[r][p] = true;
          before->second = p;
        }
      }
    }
  }

  /// The word that a slot is free for part `next`. Nobody gets it from a rank that also sends its
  /// sum there.
  void say_free(std::uint32_t rank, std::uint32_t writer, std::uint32_t p, std::uint32_t next,
                std::span<const std::uint32_t> after, LaneProgram& out) const {
    const Slice nothing{k_gradient_buffer, 0};
    out.append_write(p, writer, m_trees.tag(next, rank), nothing, nothing, 0, after);
  }

  void lower_sum(std::uint32_t rank, std::uint32_t p, LaneProgram& out) {
    const bool worker = m_plan.ranks[rank].worker, root = m_trees.root(p) == rank;
    const std::uint64_t bytes = m_plan.parts.bytes[p];
    const std::vector<std::uint32_t> children = m_trees.up_children(rank, p);
    std::vector<std::uint32_t> depends_on;
    std::vector<Slice> operands;
    if (worker) {
      operands.push_back(m_trees.own(rank, p));
    }
    for (const std::uint32_t child : children) {
      operands.push_back(m_trees.inbox(child, p));
      depends_on.push_back(out.append_await(p, child, m_trees.tag(p, child)));
    }
    Slice ours = operands.front();
    std::uint32_t done = k_no_op; // with what the children sent
    if (operands.size() > 1) {
      if (!worker) { // what we sent from this slot
        const std::vector<std::uint32_t>& before = m_sent[m_trees.slot(p)];
        depends_on.insert(depends_on.end(), before.begin(), before.end());
      }
      ours = m_trees.own(rank, p);
      done =
          out.append_reduce({.dtype = m_dtype[p], .part = p, .destination = ours, .bytes = bytes},
                            operands, depends_on);
      depends_on.assign(1, done);
    }
    if (!root) {
      const auto to = narrow(static_cast<std::uint64_t>(parent(rank, p)));
      if (m_waits[rank][p]) {
        depends_on.push_back(out.append_await(p, to, m_trees.tag(p, to)));
      }
      const std::uint32_t sent = out.append_write(p, to, m_trees.tag(p, rank), ours,
                                                  m_trees.inbox(rank, p), bytes, depends_on);
      if (operands.size() > 1) {
        m_sent[m_trees.slot(p)].assign(1, sent);
      } else {
        done = sent;
      }
    }
    for (const std::uint32_t child : children) {
      if (const std::uint32_t next = m_next[child][p]; next != k_no_op) {
        say_free(rank, child, p, next, std::span(&done, 1), out);
      }
    }
  }

  void lower_gift(std::uint32_t rank, std::uint32_t p, LaneProgram& out) {
    const std::uint64_t bytes = m_plan.parts.bytes[p];
    std::vector<std::uint32_t> depends_on;
    if (m_trees.root(p) != rank) {
      depends_on.push_back(
          out.append_await(p, narrow(static_cast<std::uint64_t>(parent(rank, p))), p));
    }
    std::vector<std::uint32_t>& before = m_sent[m_trees.slot(p)];
    depends_on.insert(depends_on.end(), before.begin(), before.end());
    std::vector<std::uint32_t> sent;
    for (const std::uint32_t child : m_trees.receivers(rank, p)) {
      std::vector<std::uint32_t> these = depends_on;
      if (m_waits[child][p]) {
        these.push_back(out.append_await(p, child, m_trees.tag(p, child)));
      }
      sent.push_back(
          out.append_write(p, child, p, m_trees.own(rank, p), m_trees.own(child, p), bytes, these));
    }
    if (const std::uint32_t next = m_next[rank][p]; next != k_no_op) {
      say_free(rank, narrow(static_cast<std::uint64_t>(parent(rank, next))), p, next, sent, out);
    }
    if (!sent.empty()) {
      before = std::move(sent);
    }
  }

  const Plan& m_plan;
  const PlanTrees& m_trees;
  bool m_sums;                ///< else it gives
  std::vector<DType> m_dtype; ///< by part
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
  const PlanTrees trees(plan, PlanTrees::Windows::of_lanes);
  HalfLowering lowering(plan, trees);
  Schedule schedule =
      lower_ranks(plan, trees.lanes(),
                  [&](std::uint32_t rank, RankProgram& program) { lowering.lower(rank, program); });
  schedule.collective = plan.collective;
  schedule.owned = owned_runs(plan);
  return schedule;
}

} // namespace reckon
