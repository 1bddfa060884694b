// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "strategies/lowerings.hpp"
#include "strategies/tree_places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace reckon {
namespace {

// Buffers of every rank, in this order; those that it does not need are empty.
constexpr std::uint32_t k_inbox = 1;  ///< slots for what remote workers send
constexpr std::uint32_t k_outbox = 2; ///< slots for the latest on its way to remote workers
constexpr std::uint32_t k_latest = 3; ///< the latest parameters of the parts that the rank serves
constexpr std::uint32_t k_local = 4;  ///< a worker's parameters
constexpr std::uint32_t k_delta = 5;  ///< what a worker's steps have changed

class AsyncLowering {
public:
  explicit AsyncLowering(const Plan& plan)
      : m_plan(plan), m_steps(plan.asynchronous->steps),
        m_deltas(plan.update->place == UpdatePlace::worker), m_slot_bytes(slot_bytes(plan)),
        m_window(std::max<std::uint64_t>(1, plan.window_parts)) {
    for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
      if (plan.ranks[r].worker) {
        m_workers.push_back(r);
      }
    }
    for (const std::uint64_t lane : plan.parts.lane) {
      m_lanes = std::max(m_lanes, lane + 1);
    }
    if (plan.parts.size() * plan.ranks.size() * m_steps * 2 >=
        std::numeric_limits<std::uint32_t>::max()) {
      fail(ErrorKind::input,
           fmt::format(
               "{} parts for {} ranks in {} steps are too many for 32-bit tags; use a larger "
               "part size or fewer steps",
               plan.parts.size(), plan.ranks.size(), m_steps));
    }
    place();
  }

  Schedule make() {
    Schedule schedule = lower_ranks(m_plan, m_lanes, [&](std::uint32_t rank, RankProgram& program) {
      lower_rank(rank, program);
    });
    schedule.outcome = Outcome::latest;
    schedule.optimizer = m_plan.update->optimizer;
    schedule.steps = narrow(m_steps);
    return schedule;
  }

private:
  /// What happened to a part between one of our lanes and one of the others' lanes so far.
  struct Lane {
    std::vector<std::vector<std::uint32_t>> got;  ///< [server]: our arrivals of its latest
    std::vector<std::vector<std::uint32_t>> sent; ///< [worker]: our writes of the latest to it
    std::vector<std::uint32_t> credits;           ///< our arrivals of any server's, in order
    std::vector<std::uint32_t> ends;              ///< of this step: what the next one waits for
    std::vector<std::uint32_t> pushed;            ///< [part]: our last write from its delta
    std::optional<std::uint32_t> start;           ///< of this step
  };

  /// Slots of each (server, lane): as many parts as can be under way.
  void place() {
    const Parts& parts = m_plan.parts;
    m_owned.assign(m_plan.ranks.size(), std::vector<std::uint64_t>(m_lanes, 0));
    m_latest_offset.resize(parts.size());
    m_position.resize(parts.size());
    m_latest_bytes.assign(m_plan.ranks.size(), 0);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      m_position[p] = m_owned[parts.server[p]][parts.lane[p]]++;
      m_latest_offset[p] = m_latest_bytes[parts.server[p]];
      m_latest_bytes[parts.server[p]] += parts.bytes[p];
    }
    m_first.assign(m_plan.ranks.size(), std::vector<std::uint64_t>(m_lanes, 0));
    m_slots = m_owned;
    m_all_slots.assign(m_plan.ranks.size(), 0);
    for (std::size_t r = 0; r < m_slots.size(); ++r) {
      for (std::size_t l = 0; l < m_lanes; ++l) {
        m_slots[r][l] = std::min(m_owned[r][l], m_window);
        m_first[r][l] = m_all_slots[r];
        m_all_slots[r] += m_slots[r][l];
      }
    }
  }

  /// The same place in inbox and outbox; `turn` counts the parts of this server and lane over all
  /// steps.
  [[nodiscard]] Slice slot(std::uint32_t buffer, std::uint32_t server, std::uint64_t lane,
                           std::uint32_t worker, std::uint64_t turn) const {
    const auto index = static_cast<std::uint64_t>(
        std::lower_bound(m_workers.begin(), m_workers.end(), worker) - m_workers.begin());
    return {buffer,
            (index * m_all_slots[server] + m_first[server][lane] + turn % m_slots[server][lane]) *
                m_slot_bytes};
  }
  [[nodiscard]] std::uint64_t turn(std::uint64_t step, std::uint32_t p) const {
    return step * m_owned[m_plan.parts.server[p]][m_plan.parts.lane[p]] + m_position[p];
  }
  [[nodiscard]] std::uint32_t tag(std::uint64_t step, std::uint32_t p, std::uint32_t worker,
                                  bool back) const {
    return narrow(((step * m_plan.parts.size() + p) * m_plan.ranks.size() + worker) * 2 +
                  (back ? 1 : 0));
  }

  static std::uint32_t add(LaneProgram& out, OpKind kind, std::uint32_t part, Slice source,
                           Slice destination, std::uint64_t bytes,
                           std::span<const std::uint32_t> depends_on) {
    return out.append(
        {.kind = kind, .part = part, .source = source, .destination = destination, .bytes = bytes},
        depends_on);
  }
  std::uint32_t add_update(LaneProgram& out, std::uint32_t part, Slice gradient, Slice parameters,
                           std::span<const std::uint32_t> depends_on) const {
    return out.append_over({.kind = OpKind::update,
                            .optimizer = m_plan.update->optimizer,
                            .part = part,
                            .destination = parameters,
                            .bytes = m_plan.parts.bytes[part]},
                           std::span(&gradient, 1), depends_on);
  }

  void lower_rank(std::uint32_t rank, RankProgram& program) {
    const bool worker = m_plan.ranks[rank].worker;
    std::vector<Lane> lanes(m_lanes);
    for (Lane& lane : lanes) {
      lane.got.resize(m_plan.ranks.size());
      lane.sent.resize(m_plan.ranks.size());
      lane.pushed.assign(m_plan.parts.size(), k_no_op);
    }
    for (std::uint64_t step = 0; step < m_steps; ++step) {
      for (std::uint64_t l = 0; worker && l < m_lanes; ++l) {
        begin_step(program.lanes[l], lanes[l], step);
      }
      for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
        const std::uint64_t l = m_plan.parts.lane[p];
        if (worker) {
          work(program.lanes[l], lanes[l], rank, step, p);
        }
        if (m_plan.parts.server[p] == rank) {
          serve(program.lanes[l], lanes[l], rank, step, p);
        }
      }
    }
    const std::uint64_t remote =
        m_workers.empty() ? 0 : m_all_slots[rank] * m_workers.size() * m_slot_bytes;
    program.buffer_bytes = {worker ? m_plan.gradient_bytes : 0,
                            remote,
                            remote,
                            m_latest_bytes[rank],
                            worker ? m_plan.gradient_bytes : 0,
                            worker && m_deltas ? m_plan.gradient_bytes : 0};
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      if (worker) {
        program.parameters.push_back(
            {local(p), m_plan.parts.offset_bytes[p], m_plan.parts.bytes[p], false});
      }
      if (m_plan.parts.server[p] == rank) {
        program.parameters.push_back(
            {latest(p), m_plan.parts.offset_bytes[p], m_plan.parts.bytes[p], true});
      }
    }
  }

  /// The next gradient is made from all of the latest parameters, in the time of the model's passes
  /// where the plan has them.
  void begin_step(LaneProgram& out, Lane& lane, std::uint64_t step) const {
    if (m_plan.passes) {
      lane.start = out.append({.kind = OpKind::delay,
                               .duration_ns = std::llround(m_plan.passes->total_seconds() * 1e9)},
                              lane.ends);
    } else if (step > 0) { // nothing but the waiting
      lane.start = add(out, OpKind::copy, 0, {}, {}, 0, lane.ends);
    }
    lane.ends.clear();
  }

  [[nodiscard]] Slice local(std::uint32_t p) const {
    return {k_local, m_plan.parts.offset_bytes[p]};
  }
  [[nodiscard]] Slice delta(std::uint32_t p) const {
    return {k_delta, m_plan.parts.offset_bytes[p]};
  }
  [[nodiscard]] Slice latest(std::uint32_t p) const { return {k_latest, m_latest_offset[p]}; }

  /// Adds what a worker has sent, or steps with it: to the latest, in whatever order they come.
  std::uint32_t apply(LaneProgram& out, std::uint32_t p, Slice what,
                      std::span<const std::uint32_t> depends_on) const {
    if (!m_deltas) {
      return add_update(out, p, what, latest(p), depends_on);
    }
    const Slice operands[] = {latest(p), what};
    return out.append_reduce({.part = p, .destination = latest(p), .bytes = m_plan.parts.bytes[p]},
                             operands, depends_on);
  }

  void work(LaneProgram& out, Lane& lane, std::uint32_t rank, std::uint64_t step, std::uint32_t p) {
    const std::uint64_t bytes = m_plan.parts.bytes[p];
    std::vector<std::uint32_t> ready;
    if (lane.start) {
      ready.push_back(*lane.start);
    }
    Slice what = gradient_of(m_plan, p);
    if (m_deltas) {
      if (lane.pushed[p] != k_no_op) { // its last change has left
        ready.push_back(lane.pushed[p]);
      }
      const std::uint32_t kept = add(out, OpKind::copy, p, local(p), delta(p), bytes, ready);
      const std::uint32_t stepped =
          add_update(out, p, gradient_of(m_plan, p), local(p), std::span(&kept, 1));
      ready = {add(out, OpKind::subtract, p, local(p), delta(p), bytes, std::span(&stepped, 1))};
      what = delta(p);
    }
    const auto server = narrow(m_plan.parts.server[p]);
    if (server == rank) { // nothing leaves the machine
      const std::uint32_t applied = apply(out, p, what, ready);
      lane.ends.push_back(
          add(out, OpKind::copy, p, latest(p), local(p), bytes, std::span(&applied, 1)));
      return;
    }
    const std::uint64_t l = m_plan.parts.lane[p], now = turn(step, p);
    std::vector<std::uint32_t>& got = lane.got[server];
    if (lane.credits.size() >= m_window) {
      ready.push_back(lane.credits[lane.credits.size() - m_window]);
    }
    if (const std::uint64_t slots = m_slots[server][l]; now >= slots) {
      ready.push_back(got[now - slots]);
    }
    lane.pushed[p] =
        out.append_write(p, server, tag(step, p, rank, false), what,
                         slot(k_inbox, server, l, rank, now), m_plan.parts.bytes[p], ready);
    got.push_back(out.append_await(p, server, tag(step, p, rank, true)));
    lane.credits.push_back(got.back());
    lane.ends.push_back(got.back());
  }

  void serve(LaneProgram& out, Lane& lane, std::uint32_t rank, std::uint64_t step,
             std::uint32_t p) const {
    const std::uint64_t l = m_plan.parts.lane[p], now = turn(step, p);
    for (const std::uint32_t worker : m_workers) {
      if (worker == rank) {
        continue;
      }
      const std::uint32_t came = out.append_await(p, worker, tag(step, p, worker, false));
      const std::uint32_t applied =
          apply(out, p, slot(k_inbox, rank, l, worker, now), std::span(&came, 1));
      std::vector<std::uint32_t> ready{applied};
      std::vector<std::uint32_t>& sent = lane.sent[worker];
      if (const std::uint64_t slots = m_slots[rank][l]; now >= slots) {
        ready.push_back(sent[now - slots]);
      }
      const Slice mine = slot(k_outbox, rank, l, worker, now);
      const std::uint32_t copied =
          add(out, OpKind::copy, p, latest(p), mine, m_plan.parts.bytes[p], ready);
      sent.push_back(out.append_write(p, worker, tag(step, p, worker, true), mine, local(p),
                                      m_plan.parts.bytes[p], std::span(&copied, 1)));
    }
  }

  const Plan& m_plan;
  std::uint64_t m_steps;
  bool m_deltas; ///< workers send changes of the parameters, not gradients
  std::uint64_t m_slot_bytes, m_window, m_lanes = 1;
  std::vector<std::uint32_t> m_workers;
  std::vector<std::uint64_t> m_position, m_latest_offset;            ///< by part
  std::vector<std::uint64_t> m_latest_bytes, m_all_slots;            ///< by rank
  std::vector<std::vector<std::uint64_t>> m_owned, m_slots, m_first; ///< [server][lane]
};

} // namespace

Schedule lower_async(const Plan& plan) {
  if (!plan.update) {
    fail(ErrorKind::input, "an asynchronous plan needs an optimizer");
  }
  require_fp32(plan, "asynchronous training");
  if (plan.strategy == "ring" || !plan.trees.empty()) {
    fail(ErrorKind::input, fmt::format("strategy {} cannot be asynchronous: it has no server that "
                                       "keeps the latest parameters for every worker",
                                       plan.strategy));
  }
  if (state_arrays(plan.update->optimizer) > 0) {
    fail(ErrorKind::input,
         fmt::format("{} cannot be asynchronous: its state would be another one at every worker, "
                     "and what that gives is not what one server's state gives",
                     name_of(plan.update->optimizer)));
  }
  return AsyncLowering(plan).make();
}

} // namespace reckon
