// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "strategies/lowerings.hpp"
#include "strategies/parts.hpp"
#include "strategies/played_passes.hpp"
#include "strategies/tree_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace reckon {
namespace {

/// Parts of one server in one lane that are announced together: all of them, or with passes each by
/// itself, since they get ready one after another.
using Group = std::vector<std::uint32_t>;

void check_in_place(const Plan& plan) {
  if (!plan.trees.empty() || plan.torus || plan.update || plan.asynchronous || plan.fixed_point ||
      plan.collective != Collective::all_reduce || plan.strategy == "ring") {
    fail(ErrorKind::input,
         "a plan that sums in place has servers of parts, and neither trees, a torus nor a ring, "
         "an optimizer's step, fixed-point sums nor another collective than all-reduce");
  }
  if (2 * plan.parts.size() * plan.ranks.size() > std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorKind::input,
         fmt::format("{} parts between {} ranks are too many to be numbered; plan "
                     "with a larger --part-bytes",
                     plan.parts.size(), plan.ranks.size()));
  }
}

std::vector<Group> groups_of(const Plan& plan, std::uint64_t lanes) {
  std::vector<Group> groups;
  if (plan.passes) {
    for (std::uint32_t p = 0; p < plan.parts.size(); ++p) {
      groups.push_back({p});
    }
    return groups;
  }
  groups.resize(plan.ranks.size() * lanes);
  for (std::uint32_t p = 0; p < plan.parts.size(); ++p) {
    groups[plan.parts.server[p] * lanes + plan.parts.lane[p]].push_back(p);
  }
  std::erase_if(groups, [](const Group& group) { return group.empty(); });
  return groups;
}

class InPlaceLowering {
public:
  InPlaceLowering(const Plan& plan, const std::vector<Group>& groups, std::uint32_t rank,
                  RankProgram& program)
      : m_plan(plan), m_groups(groups), m_rank(rank), m_worker(plan.ranks[rank].worker),
        m_program(program), m_passes(plan, program, m_worker), m_dtype(part_dtypes(plan)) {
    program.buffer_bytes = {m_worker ? plan.gradient_bytes : 0};
    for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
      m_gradient.push_back(k_gradient_buffer);
      if (plan.ranks[r].worker && r != rank) {
        m_gradient.back() = narrow(1 + program.peer_buffers.size());
        program.peer_buffers.push_back({r, k_gradient_buffer});
      }
    }
  }

  void lower() {
    for (const Group& group : m_groups) {
      if (server(group) != m_rank && m_worker) {
        say_ready(group);
      }
    }
    for (const Group& group : m_groups) {
      server(group) == m_rank ? sum(group) : await_sums(group);
    }
    m_passes.finish();
  }

private:
  [[nodiscard]] std::uint32_t server(const Group& group) const {
    return narrow(m_plan.parts.server[group.front()]);
  }
  LaneProgram& lane(const Group& group) {
    return m_program.lanes[m_plan.parts.lane[group.front()]];
  }
  [[nodiscard]] std::uint32_t ready_tag(const Group& group, std::uint32_t worker) const {
    return narrow(group.front() * m_plan.ranks.size() + worker);
  }
  [[nodiscard]] std::uint32_t summed_tag(const Group& group) const {
    return narrow(m_plan.parts.size() * m_plan.ranks.size() + group.front());
  }

  void tell(const Group& group, std::uint32_t peer, std::uint32_t tag,
            const std::vector<std::uint32_t>& after) {
    constexpr Slice k_nothing{k_gradient_buffer, 0};
    lane(group).append_write(group.front(), peer, tag, k_nothing, k_nothing, 0, after);
  }

  void say_ready(const Group& group) {
    std::vector<std::uint32_t> made;
    m_passes.add_ready(group.front(), made);
    tell(group, server(group), ready_tag(group, m_rank), made);
  }

  void sum(const Group& group) {
    std::vector<std::uint32_t> ready, sums;
    for (std::uint32_t w = 0; w < m_plan.ranks.size(); ++w) {
      if (m_plan.ranks[w].worker && w != m_rank) {
        ready.push_back(lane(group).append_await(group.front(), w, ready_tag(group, w)));
      }
    }
    m_passes.add_ready(group.front(), ready);
    for (const std::uint32_t p : group) {
      std::vector<Slice> operands;
      for (std::uint32_t w = 0; w < m_plan.ranks.size(); ++w) {
        if (m_plan.ranks[w].worker) {
          operands.push_back({m_gradient[w], m_plan.parts.offset_bytes[p]});
        }
      }
      sums.push_back(lane(group).append_over({.kind = OpKind::sum_in_place,
                                              .dtype = m_dtype[p],
                                              .part = p,
                                              .bytes = m_plan.parts.bytes[p]},
                                             operands, ready));
      m_passes.summed(p, sums.back());
    }
    for (std::uint32_t w = 0; w < m_plan.ranks.size(); ++w) {
      if (m_plan.ranks[w].worker && w != m_rank) {
        tell(group, w, summed_tag(group), sums);
      }
    }
  }

  void await_sums(const Group& group) {
    if (m_worker) {
      m_passes.summed(group.front(),
                      lane(group).append_await(group.front(), server(group), summed_tag(group)));
    }
  }

  const Plan& m_plan;
  const std::vector<Group>& m_groups;
  std::uint32_t m_rank;
  bool m_worker;
  RankProgram& m_program;
  PlayedPasses m_passes;
  std::vector<DType> m_dtype;            ///< by part
  std::vector<std::uint32_t> m_gradient; ///< by rank that works: which of our buffers its is
};

} // namespace

Schedule lower_in_place(const Plan& plan) {
  check_in_place(plan);
  std::uint64_t lanes = 1;
  for (const PlanRank& rank : plan.ranks) {
    lanes = std::max(lanes, static_cast<std::uint64_t>(rank.lanes));
  }
  const std::vector<Group> groups = groups_of(plan, lanes);
  return lower_ranks(plan, lanes, [&](std::uint32_t rank, RankProgram& program) {
    InPlaceLowering(plan, groups, rank, program).lower();
  });
}

} // namespace reckon
