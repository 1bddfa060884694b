// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "strategies/lowerings.hpp"
#include "strategies/parts.hpp"
#include "strategies/played_passes.hpp"
#include "strategies/torus/places.hpp"
#include "strategies/tree_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace reckon {
namespace {

/// One of the things that a node does for a part, in the ring of a dimension. `add` and `pass_on`
/// wait until what the node has handed on before is gone: that is of its gradient, which they
/// change, here or by what comes back.
struct TorusStep {
  enum class Kind : std::uint8_t {
    add,     ///< waits for the sum of the nodes before, and adds it to its own
    pass_on, ///< writes that to the next node
    take,    ///< waits for the sum of the whole ring
    hand_on, ///< writes that to the next node
  };
  Kind kind = Kind::add;
  std::uint8_t dimension = 0;
};

/// What `rank` does for a part of `server` that goes this way, one after the other. A dimension has
/// each kind of step at most once.
std::vector<TorusStep> torus_steps(const TorusPlaces& places, const TorusWay& way,
                                   std::uint64_t server, std::uint64_t rank) {
  using Kind = TorusStep::Kind;
  std::vector<TorusStep> steps;
  const auto append = [&](Kind kind, std::size_t d) {
    steps.push_back({kind, static_cast<std::uint8_t>(d)});
  };
  // Of a ring's nodes in the order in which the sum comes to them: the last has all of it.
  const auto turn = [&](std::size_t d) {
    const std::uint64_t after =
        places.steps(places.at(server, d), places.at(rank, d), d, way.backward);
    return (after + places.nodes(d) - 1) % places.nodes(d);
  };
  const auto sum_up = [&](std::size_t d) { // returns whether this rank ends with the sum
    const std::uint64_t at = turn(d), last = places.nodes(d) - 1;
    if (at > 0) {
      append(Kind::add, d);
    }
    if (at < last) {
      append(Kind::pass_on, d);
    }
    return at == last;
  };
  const auto hand_out = [&](std::size_t d) {
    const std::uint64_t at = turn(d), last = places.nodes(d) - 1;
    if (at < last) {
      append(Kind::take, d);
    }
    if (at + 1 != last) { // nobody after that one lacks it
      append(Kind::hand_on, d);
    }
  };
  bool holds = true;
  std::vector<std::size_t> scattered;
  for (const std::size_t d : way.scatter) {
    if (holds && places.nodes(d) > 1) {
      scattered.push_back(d);
      holds = sum_up(d);
    }
  }
  for (const std::size_t d : way.sum) {
    if (holds && places.nodes(d) > 1) {
      sum_up(d);
      hand_out(d);
    }
  }
  for (; !scattered.empty(); scattered.pop_back()) {
    hand_out(scattered.back());
  }
  return steps;
}

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
        m_handed_on.push_back(write(d, 1, gradient_of(m_c.plan, m_p)));
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
    const Slice own = gradient_of(m_c.plan, m_p);
    const Slice operands[] = {own, m_c.inbox(d, m_p)};
    m_ready.assign(1, m_out.append_reduce({.dtype = m_c.dtype[m_p],
                                           .part = m_p,
                                           .destination = own,
                                           .bytes = m_c.plan.parts.bytes[m_p]},
                                          operands, m_ready));
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
                              gradient_of(m_c.plan, m_p), to, m_c.plan.parts.bytes[m_p], m_ready);
  }

  const Context& m_c;
  std::uint32_t m_rank, m_p;
  const TorusWay& m_way;
  LaneProgram& m_out;
  std::vector<std::uint32_t> m_ready;     ///< what our next op waits for
  std::vector<std::uint32_t> m_handed_on; ///< writes that nobody has to answer
};

void lower_rank(const Context& c, std::uint32_t rank, RankProgram& program) {
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
  const Context context(plan);
  return lower_ranks(plan, context.lanes, [&](std::uint32_t rank, RankProgram& program) {
    lower_rank(context, rank, program);
  });
}

} // namespace reckon
