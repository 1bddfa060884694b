// SPDX-License-Identifier: Apache-2.0
#include "strategies/torus/lowering.hpp"

#include "core/error.hpp"
#include "strategies/parts.hpp"
#include "strategies/played_passes.hpp"
#include "strategies/torus/places.hpp"
#include "strategies/torus/steps.hpp"
#include "strategies/tree_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace reckon {
namespace {

/// What all ranks' programs have in common.
struct Context {
  explicit Context(const Plan& of)
      : plan(of), places(of.torus->shape), dtype(part_dtypes(of)),
        window(std::max<std::uint64_t>(1, of.window_parts)),
        lanes(1 + *std::max_element(of.parts.lane.begin(), of.parts.lane.end())),
        slot_bytes(reckon::slot_bytes(of)) {
    std::vector<std::uint64_t> count(lanes, 0);
    for (const std::uint64_t lane : of.parts.lane) {
      position.push_back(count[lane]++);
    }
  }

  [[nodiscard]] std::uint64_t region_bytes() const { return lanes * window * slot_bytes; }
  [[nodiscard]] Slice inbox(std::size_t dimension, std::uint32_t p) const {
    const std::uint64_t slot = plan.parts.lane[p] * window + position[p] % window;
    return {k_inbox_buffer, dimension * region_bytes() + slot * slot_bytes};
  }
  [[nodiscard]] Slice gradient(std::uint32_t p) const {
    return {k_gradient_buffer, plan.parts.offset_bytes[p]};
  }

  const Plan& plan;
  TorusPlaces places;
  std::vector<DType> dtype; ///< by part
  std::uint64_t window, lanes, slot_bytes;
  std::vector<std::uint64_t> position; ///< by part: of its lane
};

/// A rank's ops for one part.
class PartLowering {
public:
  PartLowering(const Context& context, std::uint32_t rank, std::uint32_t p, LaneProgram& out,
               std::vector<std::uint32_t> begin)
      : m_c(context), m_rank(rank), m_p(p),
        m_way(context.plan.torus->ways[context.plan.parts.tree[p]]), m_out(out),
        m_ready(std::move(begin)) {}

  /// Returns the op with which the whole sum is here.
  std::uint32_t lower() {
    for (const TorusStep& step :
         torus_steps(m_c.places, m_way, m_c.plan.parts.server[m_p], m_rank)) {
      const std::size_t d = step.dimension;
      switch (step.kind) {
      case TorusStep::Kind::add:
        wait_for_handed_on();
        add(d);
        break;
      case TorusStep::Kind::pass_on:
        wait_for_handed_on();
        write(d, 0, m_c.inbox(d, m_p));
        break;
      case TorusStep::Kind::take:
        m_ready.assign(1, await(d, 1));
        break;
      case TorusStep::Kind::hand_on:
        m_handed_on.push_back(write(d, 1, m_c.gradient(m_p)));
        break;
      }
    }
    return m_ready.front();
  }

private:
  void wait_for_handed_on() {
    m_ready.insert(m_ready.end(), m_handed_on.begin(), m_handed_on.end());
    m_handed_on.clear();
  }
  void add(std::size_t d) {
    m_ready.push_back(await(d, 0));
    Op op;
    op.part = m_p;
    op.dtype = m_c.dtype[m_p];
    op.bytes = m_c.plan.parts.bytes[m_p];
    op.destination = m_c.gradient(m_p);
    const Slice operands[] = {m_c.gradient(m_p), m_c.inbox(d, m_p)};
    m_ready.assign(1, m_out.append_reduce(op, operands, m_ready));
  }

  /// Unique among all writes to one rank: each dimension's ring comes by at most twice.
  [[nodiscard]] std::uint32_t tag(std::size_t d, std::uint32_t round) const {
    return (m_p * static_cast<std::uint32_t>(TorusPlaces::k_dimensions) +
            static_cast<std::uint32_t>(d)) *
               2 +
           round;
  }
  std::uint32_t await(std::size_t d, std::uint32_t round) {
    return m_out.append_await(m_p, m_c.places.next(m_rank, d, !m_way.backward), tag(d, round));
  }
  std::uint32_t write(std::size_t d, std::uint32_t round, Slice to) {
    return m_out.append_write(m_p, m_c.places.next(m_rank, d, m_way.backward), tag(d, round),
                              m_c.gradient(m_p), to, m_c.plan.parts.bytes[m_p], m_ready);
  }

  const Context& m_c;
  std::uint32_t m_rank, m_p;
  const TorusWay& m_way;
  LaneProgram& m_out;
  std::vector<std::uint32_t> m_ready;     ///< what our next op waits for
  std::vector<std::uint32_t> m_handed_on; ///< writes that nobody has to answer
};

void lower_rank(const Context& c, std::uint32_t rank, RankProgram& program) {
  program.lanes.resize(c.lanes);
  PlayedPasses passes(c.plan, program, true);
  std::vector<std::vector<std::uint32_t>> back(c.lanes); ///< by position: the whole sum is here
  for (std::uint32_t p = 0; p < c.plan.parts.size(); ++p) {
    const std::uint64_t lane = c.plan.parts.lane[p];
    std::vector<std::uint32_t> begin;
    if (back[lane].size() >= c.window) { // credit
      begin.push_back(back[lane][back[lane].size() - c.window]);
    }
    passes.add_ready(p, begin);
    back[lane].push_back(PartLowering(c, rank, p, program.lanes[lane], std::move(begin)).lower());
    passes.summed(p, back[lane].back());
  }
  passes.finish();
  program.buffer_bytes = {c.plan.gradient_bytes, TorusPlaces::k_dimensions * c.region_bytes()};
}

} // namespace

Schedule lower_torus(const Plan& plan) {
  if (!plan.trees.empty() || plan.torus->ways.empty() || plan.ranks.size() < 2 ||
      !std::all_of(plan.ranks.begin(), plan.ranks.end(),
                   [](const PlanRank& r) { return r.worker; })) {
    fail(ErrorKind::input, "a plan over a torus has at least two ranks, all of them workers, at "
                           "least one way, and no trees");
  }
  if (plan.parts.size() >=
      std::numeric_limits<std::uint32_t>::max() / (2 * TorusPlaces::k_dimensions)) {
    fail(ErrorKind::input, fmt::format("the plan has {} parts, too many for 32-bit tags; use a "
                                       "larger part size",
                                       plan.parts.size()));
  }
  Schedule schedule;
  schedule.runs = plan.runs;
  schedule.worker.assign(plan.ranks.size(), true);
  schedule.ranks.resize(plan.ranks.size());
  const Context context(plan);
  for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
    lower_rank(context, rank, schedule.ranks[rank]);
  }
  return schedule;
}

} // namespace reckon
