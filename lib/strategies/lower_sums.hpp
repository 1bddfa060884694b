// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"
#include "strategies/tree_places.hpp"

#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace reckon {

/// Where the sums are in a schedule that lower() made. In all strategies a part's last reduction at
/// plan.parts.server is its sum, and every write into a worker's gradient is that sum on its way
/// back. Holds references to both.
class LoweredSums {
public:
  LoweredSums(const Schedule& sums, const Plan& plan) : m_sums(sums), m_plan(plan) {
    for (std::uint32_t r = 0; r < sums.ranks.size(); ++r) {
      for (std::uint32_t l = 0; l < sums.ranks[r].lanes.size(); ++l) {
        for (const Op& op : sums.ranks[r].lanes[l].ops()) {
          if (is_return(op)) {
            m_returns.emplace(op.peer, l, op.tag);
          }
        }
      }
    }
  }

  [[nodiscard]] bool is_return(const Op& op) const {
    return op.kind == OpKind::write && op.destination.buffer == k_gradient_buffer &&
           m_sums.worker[op.peer];
  }
  /// By part: the op of this lane that makes its sum; k_no_op where this rank is not its server, or
  /// has nothing to add.
  [[nodiscard]] std::vector<std::uint32_t> made(std::uint32_t rank, std::uint32_t lane) const {
    std::vector<std::uint32_t> last(m_plan.parts.size(), k_no_op);
    const LaneProgram& program = m_sums.ranks[rank].lanes[lane];
    for (std::uint32_t i = 0; i < program.ops().size(); ++i) {
      const Op& op = program.ops()[i];
      if (op.kind == OpKind::reduce && m_plan.parts.server[op.part] == rank) {
        last[op.part] = i;
      }
    }
    return last;
  }
  /// By part: the op of a worker's lane after which its gradient is the sum; k_no_op where it is
  /// the sum from the start.
  [[nodiscard]] std::vector<std::uint32_t> there(std::uint32_t rank, std::uint32_t lane) const {
    std::vector<std::uint32_t> ready = made(rank, lane);
    const LaneProgram& program = m_sums.ranks[rank].lanes[lane];
    for (std::uint32_t i = 0; i < program.ops().size(); ++i) {
      const Op& op = program.ops()[i];
      if (op.kind == OpKind::await && m_returns.count({rank, lane, op.tag}) != 0) {
        ready[op.part] = i;
      }
    }
    return ready;
  }

private:
  const Schedule& m_sums;
  const Plan& m_plan;
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> m_returns; ///< of awaits
};

/// Replaces every lane of a schedule by changed(rank, lane).
template <class Changed>
void change_lanes(Schedule& schedule, const Changed& changed) {
  for (std::uint32_t r = 0; r < schedule.ranks.size(); ++r) {
    for (std::uint32_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
      schedule.ranks[r].lanes[l] = changed(r, l);
    }
  }
}

} // namespace reckon
