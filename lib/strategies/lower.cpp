// SPDX-License-Identifier: Apache-2.0
#include "strategies/lower.hpp"

#include "core/error.hpp"
#include "strategies/forest/racks.hpp"
#include "strategies/lowerings.hpp"
#include "strategies/parts.hpp"
#include "strategies/played_passes.hpp"
#include "strategies/tree_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

namespace reckon {
namespace {

struct Context {
  const Plan& plan;
  std::vector<std::uint32_t> workers; ///< ranks, in a ring in its order
  std::vector<std::uint32_t> place;   ///< by rank: a worker's place among them
  std::uint64_t lanes = 1;
  std::uint64_t window = 1;                      ///< parts of a lane that are under way
  std::vector<DType> dtype;                      ///< of each part
  std::vector<std::vector<std::uint64_t>> slots; ///< [rank][lane]: see slots_of
};

/// How many of the parts that it sums a rank can have under way in a lane: the greatest number
/// among any window_parts neighbours of the lane's parts.
std::vector<std::vector<std::uint64_t>> slots_of(const Context& c) {
  const Parts& parts = c.plan.parts;
  const std::size_t ranks = c.plan.ranks.size();
  std::vector<std::vector<std::uint64_t>> slots(ranks, std::vector<std::uint64_t>(c.lanes, 0));
  std::vector<std::vector<std::uint64_t>> inside = slots;
  std::vector<std::deque<std::size_t>> window(c.lanes);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::uint64_t lane = parts.lane[p];
    if (window[lane].size() == c.window) {
      --inside[narrow(parts.server[window[lane].front()])][lane];
      window[lane].pop_front();
    }
    const std::uint32_t server = narrow(parts.server[p]);
    slots[server][lane] = std::max(slots[server][lane], ++inside[server][lane]);
    window[lane].push_back(p);
  }
  return slots;
}

Context make_context(const Plan& plan) {
  Context c{plan, {}, {}, 1, std::max<std::uint64_t>(1, plan.window_parts), {}, {}};
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.ranks[r].worker) {
      c.workers.push_back(r);
    }
  }
  std::ranges::transform(plan.ring_order, c.workers.begin(), narrow);
  c.place.resize(plan.ranks.size());
  for (std::uint32_t i = 0; i < c.workers.size(); ++i) {
    c.place[c.workers[i]] = i;
  }
  const Parts& parts = plan.parts;
  if (!parts.lane.empty()) {
    c.lanes = 1 + *std::max_element(parts.lane.begin(), parts.lane.end());
  }
  if ((parts.size() + 1) * (plan.ranks.size() + 1) >= std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorKind::input,
         fmt::format(
             "the plan has {} parts for {} ranks, too many for 32-bit tags; use a larger part size",
             parts.size(), plan.ranks.size()));
  }
  c.dtype = part_dtypes(plan);
  c.slots = slots_of(c);
  return c;
}

/// Where things lie in the buffers of a rank that sums.
class Slots {
public:
  explicit Slots(const Context& c) : m_context(c), m_slot_bytes(slot_bytes(c.plan)) {
    const std::size_t ranks = c.plan.ranks.size();
    m_first.assign(ranks, std::vector<std::uint64_t>(c.lanes));
    m_total.assign(ranks, 0);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (std::size_t lane = 0; lane < c.lanes; ++lane) {
        m_first[rank][lane] = m_total[rank];
        m_total[rank] += c.slots[rank][lane];
      }
    }
  }

  /// Slot of the `at`-th part of the lane that `server` sums, for a worker.
  [[nodiscard]] Slice of_worker(std::uint32_t server, std::uint64_t lane, std::uint32_t worker,
                                std::uint64_t at) const {
    const std::uint64_t slots = m_context.slots[server][lane];
    return {k_inbox_buffer, (m_first[server][lane] * others(server) +
                             index_of(server, worker) * slots + at % slots) *
                                m_slot_bytes};
  }
  /// Where a rank that sums keeps the sum.
  [[nodiscard]] Slice of_sum(std::uint32_t server, std::uint64_t lane, std::size_t part,
                             std::uint64_t at) const {
    if (m_context.plan.ranks[server].worker) {
      return gradient_of(m_context.plan, part);
    }
    return {k_sum_buffer,
            (m_first[server][lane] + at % m_context.slots[server][lane]) * m_slot_bytes};
  }
  [[nodiscard]] std::vector<std::uint64_t> buffer_bytes(std::uint32_t rank) const {
    const bool worker = m_context.plan.ranks[rank].worker, sums = m_total[rank] > 0;
    return {worker ? m_context.plan.gradient_bytes : 0,
            sums ? m_total[rank] * others(rank) * m_slot_bytes : 0,
            sums && !worker ? m_total[rank] * m_slot_bytes : 0};
  }

private:
  /// Workers beside itself.
  [[nodiscard]] std::uint64_t others(std::uint32_t server) const {
    return m_context.workers.size() - (m_context.plan.ranks[server].worker ? 1 : 0);
  }
  [[nodiscard]] std::uint64_t index_of(std::uint32_t server, std::uint32_t worker) const {
    const bool server_before = m_context.plan.ranks[server].worker && server < worker;
    return m_context.place[worker] - (server_before ? 1 : 0);
  }

  const Context& m_context;
  std::uint64_t m_slot_bytes;
  std::vector<std::vector<std::uint64_t>> m_first; ///< [rank][lane]: its first slot, in slots
  std::vector<std::uint64_t> m_total;              ///< by rank: slots of all lanes
};

/// Builds what one rank does under a parameter server.
class ServerLowering {
public:
  ServerLowering(const Context& c, const Slots& slots, std::uint32_t rank, RankProgram& program)
      : m_c(c), m_slots(slots), m_rank(rank), m_program(program),
        m_worker(c.plan.ranks[rank].worker), m_passes(c.plan, program, m_worker), m_lanes(c.lanes) {
    const std::size_t ranks = c.plan.ranks.size();
    for (Lane& lane : m_lanes) {
      lane.position.assign(ranks, 0);
      lane.result.resize(ranks);
    }
  }

  void lower() {
    for (std::uint32_t p = 0; p < m_c.plan.parts.size(); ++p) {
      Lane& lane = m_lanes[m_c.plan.parts.lane[p]];
      const std::uint32_t server = narrow(m_c.plan.parts.server[p]);
      const std::uint32_t at = lane.position[server]++;
      if (server == m_rank) {
        sum(p, lane, at);
        lane.returned.push_back(lane.returned.empty() ? std::nullopt : lane.returned.back());
      } else if (m_worker) {
        push(p, lane, server, at);
      }
    }
    m_passes.finish();
    m_program.buffer_bytes = m_slots.buffer_bytes(m_rank);
  }

private:
  struct Lane {
    std::vector<std::uint32_t> position; ///< [rank]: parts of the lane that it has summed so far
    std::vector<std::vector<std::uint32_t>> result; ///< [server][position]: our await of its sum
    std::vector<std::vector<std::uint32_t>> sent;   ///< [position]: our writes of the sum we made
    /// [number of the part in the lane]: our await of the last sum up to it; none before the first.
    std::vector<std::optional<std::uint32_t>> returned;
  };

  [[nodiscard]] std::uint32_t push_tag(std::uint64_t part, std::uint64_t from) const {
    return narrow(m_c.plan.parts.size() + part * m_c.plan.ranks.size() + from);
  }
  LaneProgram& out(std::uint32_t p) { return m_program.lanes[m_c.plan.parts.lane[p]]; }

  std::uint32_t write(std::uint32_t p, std::uint32_t peer, std::uint32_t tag, Slice source,
                      Slice destination, std::span<const std::uint32_t> dependencies) {
    return out(p).append_write(p, peer, tag, source, destination, m_c.plan.parts.bytes[p],
                               dependencies);
  }
  std::uint32_t await(std::uint32_t p, std::uint32_t peer, std::uint32_t tag) {
    return out(p).append_await(p, peer, tag);
  }

  /// A worker's part of somebody else.
  void push(std::uint32_t p, Lane& lane, std::uint32_t server, std::uint64_t at) {
    const std::uint64_t number = m_c.plan.parts.lane[p];
    std::vector<std::uint32_t>& dependencies = m_dependencies;
    dependencies.clear();
    // In order through one window over all servers: what each of them gets of the link is then its
    // share of the parts, not of the connections.
    const std::uint64_t count = lane.returned.size();
    if (count >= m_c.window && lane.returned[count - m_c.window]) {
      dependencies.push_back(*lane.returned[count - m_c.window]);
    }
    const std::uint64_t slots = m_c.slots[server][number];
    if (at >= slots &&
        (dependencies.empty() || dependencies.front() != lane.result[server][at - slots])) {
      dependencies.push_back(lane.result[server][at - slots]);
    }
    m_passes.add_ready(p, dependencies);
    write(p, server, push_tag(p, m_rank), gradient_of(m_c.plan, p),
          m_slots.of_worker(server, number, m_rank, at), dependencies);
    lane.result[server].push_back(await(p, server, p));
    m_passes.summed(p, lane.result[server].back());
    lane.returned.emplace_back(lane.result[server].back());
  }

  /// A part that we sum.
  void sum(std::uint32_t p, Lane& lane, std::uint64_t at) {
    const std::uint64_t number = m_c.plan.parts.lane[p];
    const std::vector<std::uint32_t>& workers = m_c.workers;
    std::vector<std::uint32_t>& dependencies = m_dependencies;
    std::vector<Slice>& operands = m_operands;
    dependencies.clear();
    operands.clear();
    // In rank order: the same sum bit for bit, whatever arrives first.
    for (const std::uint32_t worker : workers) {
      if (worker == m_rank) {
        operands.push_back(gradient_of(m_c.plan, p));
        m_passes.add_ready(p, dependencies);
        continue;
      }
      operands.push_back(m_slots.of_worker(m_rank, number, worker, at));
      dependencies.push_back(await(p, worker, push_tag(p, worker)));
    }
    const std::uint64_t slots = m_c.slots[m_rank][number];
    if (!m_worker && at >= slots) {
      // The sum's slot is free once it has left for everybody.
      const std::vector<std::uint32_t>& before = lane.sent[at - slots];
      dependencies.insert(dependencies.end(), before.begin(), before.end());
    }
    const Op reduce{.stores =
                        m_worker ? Stores::cached : m_c.plan.stores, // a worker's is an operand
                    .dtype = m_c.dtype[p],
                    .part = p,
                    .destination = m_slots.of_sum(m_rank, number, p, at),
                    .bytes = m_c.plan.parts.bytes[p]};
    const std::uint32_t complete = out(p).append_reduce(reduce, operands, dependencies);
    m_passes.summed(p, complete);
    std::vector<std::uint32_t>& sent = lane.sent.emplace_back();
    // Start with the worker after us, so that servers do not all write to the same worker first.
    const auto after = std::upper_bound(workers.begin(), workers.end(), m_rank) - workers.begin();
    for (std::size_t i = 0; i < workers.size(); ++i) {
      const std::uint32_t worker = workers[(static_cast<std::size_t>(after) + i) % workers.size()];
      if (worker != m_rank) {
        sent.push_back(write(p, worker, p, reduce.destination, gradient_of(m_c.plan, p),
                             std::span(&complete, 1)));
      }
    }
  }

  const Context& m_c;
  const Slots& m_slots;
  std::uint32_t m_rank;
  RankProgram& m_program;
  bool m_worker;
  PlayedPasses m_passes;
  std::vector<Lane> m_lanes;
  std::vector<std::uint32_t> m_dependencies; ///< of the op in hand
  std::vector<Slice> m_operands;
};

/// Builds what one rank does in a ring.
class RingLowering {
public:
  RingLowering(const Context& c, std::size_t place, RankProgram& program)
      : m_c(c), m_place(place), m_next(at(1)), m_previous(at(c.workers.size() - 1)),
        m_program(program), m_passes(c.plan, program, true) {}

  void lower() {
    const std::size_t n = m_c.workers.size();
    const Plan& plan = m_c.plan;
    m_program.buffer_bytes = {plan.gradient_bytes, plan.gradient_bytes};
    std::vector<std::vector<std::vector<std::uint32_t>>> owned( // [lane][place of the owner]: parts
        m_c.lanes, std::vector<std::vector<std::uint32_t>>(n));
    for (std::uint32_t p = 0; p < plan.parts.size(); ++p) {
      const std::uint32_t owner = m_c.place[narrow(plan.parts.server[p])];
      owned[plan.parts.lane[p]][owner].push_back(p);
    }
    for (const auto& lane : owned) {
      lower_lane(lane);
    }
    m_passes.finish();
  }

private:
  /// Round by round, in each the next part of every owner: first the sums, nearest start first,
  /// then the ways back.
  void lower_lane(const std::vector<std::vector<std::uint32_t>>& owned) {
    const std::size_t n = owned.size();
    const auto rounds =
        std::max_element(owned.begin(), owned.end(), [](const auto& a, const auto& b) {
          return a.size() < b.size();
        })->size();
    std::vector<std::uint32_t> returned; // our awaits of the sums that started here
    for (std::size_t round = 0; round < rounds; ++round) {
      const auto part_of = [&](std::size_t step) -> std::optional<std::uint32_t> {
        const std::vector<std::uint32_t>& parts = owned[(m_place + 2 * n - 1 - step) % n];
        return round < parts.size() ? std::optional(parts[round]) : std::nullopt;
      };
      for (std::size_t step = 0; step < n; ++step) { // the owner is step + 1 places back
        if (const auto p = part_of(step)) {
          step == 0 ? start(*p, returned) : sum(*p, step + 1 == n);
        }
      }
      for (std::size_t step = 0; step + 1 < n; ++step) {
        if (const auto p = part_of(step)) {
          const std::uint32_t arrived = await(*p, sum_tag(*p));
          m_passes.summed(*p, arrived);
          if (step == 0) {
            returned.push_back(arrived);
          }
          if (step + 2 < n) {
            write(*p, k_gradient_buffer, sum_tag(*p), std::span(&arrived, 1));
          }
        }
      }
    }
  }

  void start(std::uint32_t p, const std::vector<std::uint32_t>& returned) {
    m_dependencies.clear();
    if (returned.size() >= m_c.window) {
      m_dependencies.push_back(returned[returned.size() - m_c.window]);
    }
    m_passes.add_ready(p, m_dependencies);
    write(p, k_inbox_buffer, p, m_dependencies);
  }

  void sum(std::uint32_t p, bool complete) {
    const Slice own = gradient_of(m_c.plan, p);
    const Slice operands[] = {own, Slice{k_inbox_buffer, own.offset}};
    m_dependencies.assign(1, await(p, p));
    m_passes.add_ready(p, m_dependencies);
    const std::uint32_t summed = out(p).append_reduce(
        {.dtype = m_c.dtype[p], .part = p, .destination = own, .bytes = m_c.plan.parts.bytes[p]},
        operands, m_dependencies);
    if (complete) { // we own it: from here the sum goes round
      m_passes.summed(p, summed);
      write(p, k_gradient_buffer, sum_tag(p), std::span(&summed, 1));
    } else {
      write(p, k_inbox_buffer, p, std::span(&summed, 1));
    }
  }

  [[nodiscard]] std::uint32_t at(std::size_t places_on) const {
    return m_c.workers[(m_place + places_on) % m_c.workers.size()];
  }
  [[nodiscard]] std::uint32_t sum_tag(std::uint32_t p) const {
    return narrow(m_c.plan.parts.size() + p);
  }
  LaneProgram& out(std::uint32_t p) { return m_program.lanes[m_c.plan.parts.lane[p]]; }
  void write(std::uint32_t p, std::uint32_t buffer, std::uint32_t tag,
             std::span<const std::uint32_t> dependencies) {
    const Slice source = gradient_of(m_c.plan, p);
    out(p).append_write(p, m_next, tag, source, {buffer, source.offset}, m_c.plan.parts.bytes[p],
                        dependencies);
  }
  std::uint32_t await(std::uint32_t p, std::uint32_t tag) {
    return out(p).append_await(p, m_previous, tag);
  }

  const Context& m_c;
  std::size_t m_place; ///< of the rank among the workers
  std::uint32_t m_next, m_previous;
  RankProgram& m_program;
  PlayedPasses m_passes;
  std::vector<std::uint32_t> m_dependencies;
};

void lower_ring(const Context& c, std::uint32_t rank, RankProgram& program) {
  if (!c.plan.ranks[rank].worker) { // a server has no part in a ring
    program.buffer_bytes = {0, 0};
  } else if (c.workers.size() < 2) {
    program.buffer_bytes = {c.plan.gradient_bytes, 0};
  } else {
    RingLowering(c, c.place[rank], program).lower();
  }
}

Schedule lower_flat(const Plan& plan) {
  if (plan.strategy == k_rack_hierarchical) {
    fail(ErrorKind::input, fmt::format("a plan of strategy {} has trees, and this one of an older "
                                       "version has none; make the plan again with this version",
                                       plan.strategy));
  }
  const Context context = make_context(plan);
  const Slots slots(context);
  return lower_ranks(plan, context.lanes, [&](std::uint32_t rank, RankProgram& program) {
    if (plan.strategy == "ring") {
      lower_ring(context, rank, program);
    } else {
      ServerLowering(context, slots, rank, program).lower();
    }
  });
}

} // namespace

Schedule lower(const Plan& plan) {
  if (plan.collective != Collective::all_reduce) {
    return lower_halves(plan);
  }
  if (plan.sums_in_place) {
    return lower_in_place(plan);
  }
  if (plan.asynchronous) {
    return lower_async(plan);
  }
  if (plan.fixed_point && plan.update) {
    fail(ErrorKind::input, "a plan has either an optimizer's step or fixed-point sums");
  }
  Schedule sums = plan.torus           ? lower_torus(plan)
                  : plan.trees.empty() ? lower_flat(plan)
                                       : lower_trees(plan);
  if (plan.one_queue) {
    sums = with_one_queue(sums, plan);
  }
  if (plan.fixed_point) {
    return with_fixed_point(sums, plan);
  }
  if (plan.update) {
    require_fp32(plan, "an optimizer's step");
    return with_update(sums, plan);
  }
  return sums;
}

} // namespace reckon
