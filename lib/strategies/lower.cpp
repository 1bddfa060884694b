// SPDX-License-Identifier: Apache-2.0
#include "strategies/lower.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>

namespace reckon {
namespace {

constexpr std::uint32_t k_inbox_buffer = 1;  ///< what peers write and we have not summed yet
constexpr std::uint32_t k_sum_buffer = 2;    ///< sums of a server that has no gradient of its own
constexpr std::uint64_t k_page_bytes = 4096; ///< slots begin on pages (BytePS, section 6.2)

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

std::uint32_t narrow(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

struct Context {
  const Plan& plan;
  std::vector<std::uint32_t> workers; ///< ranks
  std::uint64_t lanes = 1;
  std::uint64_t window = 1;                      ///< parts of a lane that are under way
  std::vector<DType> dtype;                      ///< of each part
  std::vector<std::vector<std::uint64_t>> slots; ///< [server][lane]
};

/// How many of its parts a server can have under way in a lane: [server][lane]. The greatest number
/// among any window_parts neighbours of the lane's parts.
std::vector<std::vector<std::uint64_t>> slots_of(const Context& c) {
  const Parts& parts = c.plan.parts;
  const std::size_t ranks = c.plan.ranks.size();
  std::vector<std::vector<std::uint64_t>> slots(ranks, std::vector<std::uint64_t>(c.lanes, 0));
  std::vector<std::vector<std::uint64_t>> inside = slots;
  std::vector<std::deque<std::uint64_t>> window(c.lanes); // servers of the last parts
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::uint64_t lane = parts.lane[p], server = parts.server[p];
    if (window[lane].size() == c.window) {
      --inside[window[lane].front()][lane];
      window[lane].pop_front();
    }
    window[lane].push_back(server);
    slots[server][lane] = std::max(slots[server][lane], ++inside[server][lane]);
  }
  return slots;
}

Context make_context(const Plan& plan) {
  Context c{plan, {}, 1, std::max<std::uint64_t>(1, plan.window_parts), {}, {}};
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.ranks[r].worker) {
      c.workers.push_back(r);
    }
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
  std::size_t run = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    while (run + 1 < plan.runs.size() && parts.offset_bytes[p] >= plan.runs[run + 1].offset_bytes) {
      ++run;
    }
    while (run > 0 && parts.offset_bytes[p] < plan.runs[run].offset_bytes) {
      --run; // parts need not be in order of address
    }
    c.dtype.push_back(plan.runs[run].dtype);
  }
  c.slots = slots_of(c);
  return c;
}

Slice gradient_of(const Plan& plan, std::size_t part) {
  return {k_gradient_buffer, plan.parts.offset_bytes[part]};
}

void lower_server(const Context& c, std::uint32_t rank, Schedule& schedule) {
  const Plan& plan = c.plan;
  const std::size_t ranks = plan.ranks.size();
  const std::uint64_t slot_bytes = round_up(plan.part_bytes, k_page_bytes);
  const bool is_worker = plan.ranks[rank].worker;
  const std::uint64_t parts = plan.parts.size();
  const std::uint64_t remote_workers = c.workers.size() - (is_worker ? 1 : 0);
  RankProgram& program = schedule.ranks[rank];

  // Where the slots of a lane begin in the server's inbox.
  std::vector<std::vector<std::uint64_t>> first_slot(ranks, std::vector<std::uint64_t>(c.lanes));
  std::vector<std::uint64_t> all_slots(ranks, 0);
  for (std::size_t server = 0; server < ranks; ++server) {
    for (std::size_t lane = 0; lane < c.lanes; ++lane) {
      first_slot[server][lane] = all_slots[server];
      all_slots[server] += c.slots[server][lane];
    }
  }
  // Position of each part in its server's lane, which is the same for every worker.
  std::vector<std::vector<std::uint32_t>> position(ranks, std::vector<std::uint32_t>(c.lanes));
  struct LaneState {
    std::vector<std::vector<std::uint32_t>> result; ///< [server][position]: our await of its sum
    std::vector<std::vector<std::uint32_t>> sent;   ///< [position]: our writes of the sum we own
    /// [number of the part in the lane]: our await of the last sum up to it; none before the first.
    std::vector<std::optional<std::uint32_t>> returned;
  };
  std::vector<LaneState> state(c.lanes);
  for (LaneState& s : state) {
    s.result.resize(ranks);
  }
  const auto push_tag = [&](std::uint64_t part, std::uint64_t worker) {
    return narrow(parts + part * ranks + worker);
  };
  // Where the slot of worker number `index` among those remote to `server` lies in the server's
  // inbox.
  const auto slot = [&](std::uint64_t server, std::uint64_t lane, std::uint64_t index,
                        std::uint64_t at) {
    const std::uint64_t others = c.workers.size() - (plan.ranks[server].worker ? 1 : 0);
    const std::uint64_t slots = c.slots[server][lane];
    return Slice{k_inbox_buffer,
                 (first_slot[server][lane] * others + index * slots + at % slots) * slot_bytes};
  };
  const auto index_at = [&](std::uint64_t server, std::uint32_t worker) {
    const auto it = std::lower_bound(c.workers.begin(), c.workers.end(), worker);
    const bool server_before = plan.ranks[server].worker && server < worker;
    return static_cast<std::uint64_t>(it - c.workers.begin()) - (server_before ? 1 : 0);
  };

  std::vector<std::uint32_t> dependencies;
  std::vector<Slice> operands;
  bool owns = false;
  for (std::uint32_t p = 0; p < parts; ++p) {
    const auto server = narrow(plan.parts.server[p]);
    const std::uint64_t lane = plan.parts.lane[p];
    const std::uint32_t at = position[server][lane]++;
    const std::uint64_t bytes = plan.parts.bytes[p];
    LaneProgram& out = program.lanes[lane];
    LaneState& here = state[lane];
    if (is_worker && server != rank) {
      dependencies.clear();
      // In order through one window over all servers: what each of them gets of the link is then
      // its share of the parts, not of the connections.
      const std::uint64_t number = here.returned.size();
      if (number >= c.window && here.returned[number - c.window]) {
        dependencies.push_back(*here.returned[number - c.window]);
      }
      const std::uint64_t slots = c.slots[server][lane];
      if (at >= slots &&
          (dependencies.empty() || dependencies.front() != here.result[server][at - slots])) {
        dependencies.push_back(here.result[server][at - slots]);
      }
      Op push;
      push.kind = OpKind::write;
      push.part = p;
      push.peer = server;
      push.tag = push_tag(p, rank);
      push.source = gradient_of(plan, p);
      push.destination = slot(server, lane, index_at(server, rank), at);
      push.bytes = bytes;
      out.append(push, dependencies);
      Op result;
      result.kind = OpKind::await;
      result.part = p;
      result.peer = server;
      result.tag = p;
      here.result[server].push_back(out.append(result, {}));
      here.returned.emplace_back(here.result[server].back());
      continue;
    }
    here.returned.push_back(here.returned.empty() ? std::nullopt : here.returned.back());
    if (server == rank) {
      owns = true;
      dependencies.clear();
      operands.clear();
      Op reduce;
      reduce.part = p;
      reduce.dtype = c.dtype[p];
      reduce.bytes = bytes;
      reduce.destination =
          is_worker ? gradient_of(plan, p)
                    : Slice{k_sum_buffer,
                            (first_slot[rank][lane] + at % c.slots[rank][lane]) * slot_bytes};
      for (const std::uint32_t worker :
           c.workers) { // in rank order: the same sum bit for bit, whatever arrives first
        if (worker == rank) {
          operands.push_back(gradient_of(plan, p));
          continue;
        }
        operands.push_back(slot(rank, lane, index_at(rank, worker), at));
        Op arrival;
        arrival.kind = OpKind::await;
        arrival.part = p;
        arrival.peer = worker;
        arrival.tag = push_tag(p, worker);
        dependencies.push_back(out.append(arrival, {}));
      }
      if (!is_worker && at >= c.slots[rank][lane]) {
        // The sum's slot is free once it has left for every worker.
        const std::vector<std::uint32_t>& before = here.sent[at - c.slots[rank][lane]];
        dependencies.insert(dependencies.end(), before.begin(), before.end());
      }
      const std::uint32_t summed = out.append_reduce(reduce, operands, dependencies);
      std::vector<std::uint32_t>& sent = here.sent.emplace_back();
      // Start with the worker after us, so that servers do not all write to the same worker
      // first.
      const auto after =
          std::upper_bound(c.workers.begin(), c.workers.end(), rank) - c.workers.begin();
      for (std::size_t i = 0; i < c.workers.size(); ++i) {
        const std::uint32_t worker =
            c.workers[(static_cast<std::size_t>(after) + i) % c.workers.size()];
        if (worker == rank) {
          continue;
        }
        Op back;
        back.kind = OpKind::write;
        back.part = p;
        back.peer = worker;
        back.tag = p;
        back.source = reduce.destination;
        back.destination = gradient_of(plan, p);
        back.bytes = bytes;
        sent.push_back(out.append(back, std::span(&summed, 1)));
      }
    }
  }
  program.buffer_bytes = {is_worker ? plan.gradient_bytes : 0,
                          owns ? all_slots[rank] * remote_workers * slot_bytes : 0,
                          owns && !is_worker ? all_slots[rank] * slot_bytes : 0};
}

void lower_ring(const Context& c, std::uint32_t rank, Schedule& schedule) {
  const Plan& plan = c.plan;
  const std::size_t n = c.workers.size();
  RankProgram& program = schedule.ranks[rank];
  program.buffer_bytes = {0, 0};
  const auto self = std::lower_bound(c.workers.begin(), c.workers.end(), rank);
  if (self == c.workers.end() || *self != rank) {
    return; // a server has no part in a ring
  }
  program.buffer_bytes[k_gradient_buffer] = plan.gradient_bytes;
  if (n < 2) {
    return;
  }
  program.buffer_bytes[k_inbox_buffer] = plan.gradient_bytes;
  const auto place = static_cast<std::size_t>(self - c.workers.begin());
  const std::uint32_t next = c.workers[(place + 1) % n];
  const std::uint32_t previous = c.workers[(place + n - 1) % n];
  const std::uint64_t parts = plan.parts.size();
  std::vector<std::vector<std::uint32_t>> owned(n); // parts by place of their owner
  for (std::uint32_t p = 0; p < parts; ++p) {
    const auto it =
        std::lower_bound(c.workers.begin(), c.workers.end(), narrow(plan.parts.server[p]));
    owned[static_cast<std::size_t>(it - c.workers.begin())].push_back(p);
  }
  const auto write_to_next = [&](std::uint32_t p, std::uint32_t buffer, std::uint64_t tag,
                                 std::span<const std::uint32_t> depends_on) {
    Op op;
    op.kind = OpKind::write;
    op.part = p;
    op.peer = next;
    op.tag = narrow(tag);
    op.source = gradient_of(plan, p);
    op.destination = {buffer, plan.parts.offset_bytes[p]};
    op.bytes = plan.parts.bytes[p];
    return program.lanes[plan.parts.lane[p]].append(op, depends_on);
  };
  const auto arrival = [&](std::uint32_t p, std::uint64_t tag) {
    Op op;
    op.kind = OpKind::await;
    op.part = p;
    op.peer = previous;
    op.tag = narrow(tag);
    return program.lanes[plan.parts.lane[p]].append(op, {});
  };
  // Step by step as the data come: in step t of the reduce-scatter we handle the parts whose owner
  // is t+1 places back.
  for (std::size_t step = 0; step < n; ++step) {
    for (const std::uint32_t p : owned[(place + 2 * n - 1 - step) % n]) {
      if (step == 0) { // the part starts here
        write_to_next(p, k_inbox_buffer, p, {});
        continue;
      }
      const std::uint32_t arrived = arrival(p, p);
      Op reduce;
      reduce.part = p;
      reduce.dtype = c.dtype[p];
      reduce.bytes = plan.parts.bytes[p];
      reduce.destination = gradient_of(plan, p);
      const Slice operands[] = {gradient_of(plan, p),
                                Slice{k_inbox_buffer, plan.parts.offset_bytes[p]}};
      const std::uint32_t summed =
          program.lanes[plan.parts.lane[p]].append_reduce(reduce, operands, std::span(&arrived, 1));
      const bool complete = step + 1 == n; // we own it: from here the sum goes round
      write_to_next(p, complete ? k_gradient_buffer : k_inbox_buffer, complete ? parts + p : p,
                    std::span(&summed, 1));
    }
  }
  for (std::size_t step = 0; step + 1 < n;
       ++step) { // all-gather: first what the rank before us owns
    for (const std::uint32_t p : owned[(place + 2 * n - 1 - step) % n]) {
      const std::uint32_t arrived = arrival(p, parts + p);
      if (step + 2 < n) {
        write_to_next(p, k_gradient_buffer, parts + p, std::span(&arrived, 1));
      }
    }
  }
}

} // namespace

Schedule lower(const Plan& plan) {
  const Context context = make_context(plan);
  Schedule schedule;
  for (const DTypeRun& run : plan.runs) {
    schedule.runs.push_back({run.offset_bytes, run.bytes, run.dtype});
  }
  schedule.ranks.resize(plan.ranks.size());
  for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
    schedule.worker.push_back(plan.ranks[rank].worker);
    schedule.ranks[rank].lanes.resize(context.lanes);
    if (plan.strategy == "ring") {
      lower_ring(context, rank, schedule);
    } else {
      lower_server(context, rank, schedule);
    }
  }
  return schedule;
}

} // namespace reckon
