// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"
#include "strategies/parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace reckon {

/// The last layer in gradient order with bytes in the part, of a plan with passes.
[[nodiscard]] inline std::size_t last_layer(const Plan& plan, std::uint32_t p) {
  const std::vector<std::uint64_t>& ends = plan.passes->end_bytes;
  const std::uint64_t last = plan.parts.offset_bytes[p] + plan.parts.bytes[p] - 1;
  const auto it = std::upper_bound(ends.begin(), ends.end(), last);
  return std::min(static_cast<std::size_t>(it - ends.begin()), ends.size() - 1);
}

/// The passes of a worker's model, played in each of its lanes: the backward passes from the start,
/// and at the end the forward passes. In gradient order the first of them waits for the lane's sums
/// of all parts; by priority each for those of its own layer. Passes of parts are one before each
/// part of the lane, in order, and one after it, which waits for that part's sum alone.
class PlayedPasses {
public:
  PlayedPasses(const Plan& plan, RankProgram& program, bool worker)
      : m_plan(plan), m_program(program), m_active(worker && plan.passes),
        m_by_priority(m_active && !in_gradient_order(plan.parts)) {
    if (!m_active) {
      return;
    }
    m_backward.resize(program.lanes.size());
    if (plan.passes->of_parts) {
      for (std::uint32_t p = 0; p < plan.parts.size(); ++p) {
        const std::size_t lane = plan.parts.lane[p];
        std::vector<std::uint32_t>& before = m_backward[lane];
        m_before.push_back(
            append(lane, 0, before.empty() ? before : std::vector{before.back()}, p));
        before.push_back(m_before.back());
      }
      m_after.resize(plan.parts.size());
      return;
    }
    m_sums.resize(program.lanes.size());
    for (std::size_t l = 0; l < program.lanes.size(); ++l) {
      m_sums[l].resize(plan.passes->size());
      for (const double seconds : plan.passes->backward_seconds) {
        m_backward[l].push_back(append(l, seconds,
                                       m_backward[l].empty() ? std::vector<std::uint32_t>()
                                                             : std::vector{m_backward[l].back()}));
      }
    }
  }

  /// Adds the ops that must end before our gradient of part `p` is ready.
  void add_ready(std::uint32_t p, std::vector<std::uint32_t>& dependencies) const {
    if (m_active) {
      dependencies.push_back(m_plan.passes->of_parts
                                 ? m_before[p]
                                 : m_backward[m_plan.parts.lane[p]][last_layer(m_plan, p)]);
    }
  }
  /// Our copy of the sum of part `p` is ready when `op` is done.
  void summed(std::uint32_t p, std::uint32_t op) {
    if (m_active && m_plan.passes->of_parts) {
      m_after[p].push_back(op);
    } else if (m_active) { // the layer whose forward pass comes first waits; the others come after
                           // it
      const std::size_t layer = m_by_priority ? last_layer(m_plan, p) : m_plan.passes->size() - 1;
      m_sums[m_plan.parts.lane[p]][layer].push_back(op);
    }
  }
  void finish() {
    if (m_active && m_plan.passes->of_parts) {
      for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
        m_after[p].push_back(m_before[p]);
        append(m_plan.parts.lane[p], 0, m_after[p], p);
      }
      return;
    }
    for (std::size_t l = 0; m_active && l < m_program.lanes.size(); ++l) {
      std::uint32_t before = m_backward[l].back();
      for (std::size_t layer = m_plan.passes->size(); layer-- > 0;) {
        m_sums[l][layer].push_back(before);
        before = append(l, m_plan.passes->forward_seconds[layer], m_sums[l][layer]);
      }
    }
  }

private:
  std::uint32_t append(std::size_t lane, double seconds,
                       const std::vector<std::uint32_t>& dependencies, std::uint32_t part = 0) {
    Op op;
    op.kind = OpKind::delay;
    op.part = part;
    op.duration_ns = std::llround(seconds * 1e9);
    return m_program.lanes[lane].append(op, dependencies);
  }
  const Plan& m_plan;
  RankProgram& m_program;
  bool m_active, m_by_priority;
  std::vector<std::uint32_t> m_before;                         ///< by part, of passes of parts
  std::vector<std::vector<std::uint32_t>> m_after;             ///< by part: ops
  std::vector<std::vector<std::uint32_t>> m_backward;          ///< [lane][layer]
  std::vector<std::vector<std::vector<std::uint32_t>>> m_sums; ///< [lane][layer]: ops
};

} // namespace reckon
