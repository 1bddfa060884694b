// SPDX-License-Identifier: Apache-2.0
#include "export/msccl_steps.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace reckon::msccl {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  fail(ErrorKind::input, fmt::format("MSCCL: {}; a ring of equal parts fits: plan with --strategy "
                                     "ring and a --part-bytes that divides the gradient",
                                     why));
}

/// A lane while its steps are put in order.
struct Lane {
  const LaneProgram* program = nullptr;
  std::size_t rank = 0, number = 0;
  ThreadBlock block;
  std::vector<std::uint32_t> missing; ///< dependencies that are not done, by op
  std::vector<std::vector<std::uint32_t>> successors;
  std::map<std::uint32_t, std::uint32_t> await_of; ///< tag -> op
  std::set<std::uint32_t> sends;                   ///< ready
  std::optional<const Op*> arrived;                ///< sent to us and not received
};

class Orderer {
public:
  explicit Orderer(const Schedule& schedule) : m_schedule(schedule) {
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      m_first.push_back(m_lanes.size());
      for (std::size_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
        add_lane(schedule.ranks[r].lanes[l], r, l);
      }
    }
  }

  std::vector<std::vector<ThreadBlock>> run() {
    for (Lane& lane : m_lanes) {
      for (std::uint32_t op = 0; op < lane.missing.size(); ++op) {
        if (lane.missing[op] == 0) {
          ready(lane, op);
        }
      }
    }
    for (bool any = true; any;) { // rounds: each lane makes one step, if it can
      any = false;
      for (Lane& lane : m_lanes) {
        any = receive(lane) || send(lane) || any;
      }
    }
    std::vector<std::vector<ThreadBlock>> blocks(m_schedule.ranks.size());
    for (Lane& lane : m_lanes) {
      if (std::any_of(lane.missing.begin(), lane.missing.end(),
                      [](std::uint32_t count) { return count > 0; }) ||
          !lane.sends.empty()) {
        refuse(fmt::format("lane {} of rank {} cannot make its steps one after another while each "
                           "connection holds one chunk",
                           lane.number, lane.rank));
      }
      blocks[lane.rank].push_back(std::move(lane.block));
    }
    return blocks;
  }

private:
  void add_lane(const LaneProgram& program, std::size_t rank, std::size_t number) {
    Lane lane;
    lane.program = &program;
    lane.rank = rank;
    lane.number = number;
    const std::size_t count = program.ops().size();
    lane.missing.resize(count);
    lane.successors.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const Op& op = program.ops()[i];
      for (const std::uint32_t before : program.dependencies(i)) {
        lane.successors[before].push_back(i);
        ++lane.missing[i];
      }
      if (op.kind == OpKind::await) {
        ++lane.missing[i]; // its arrival
        lane.await_of[op.tag] = i;
        meet(lane, lane.block.receive_peer, op.peer, "receives from");
      } else if (op.kind == OpKind::write) {
        meet(lane, lane.block.send_peer, op.peer, "sends to");
      }
    }
    m_lanes.push_back(std::move(lane));
  }

  static void meet(const Lane& lane, int& peer, std::uint32_t other, const char* how) {
    if (peer >= 0 && peer != static_cast<int>(other)) {
      refuse(
          fmt::format("lane {} of rank {} {} ranks {} and {}, and a thread block has one of each",
                      lane.number, lane.rank, how, peer, other));
    }
    peer = static_cast<int>(other);
  }

  void ready(Lane& lane, std::uint32_t op) {
    switch (lane.program->ops()[op].kind) {
    case OpKind::write:
      lane.sends.insert(op);
      break;
    case OpKind::reduce: // was made as it arrived
    case OpKind::delay:  // the model's passes are not the collective's
      complete(lane, op);
      break;
    case OpKind::await:
      break; // receive() completes it
    default:
      refuse(fmt::format("lane {} of rank {} does more than send, receive and add", lane.number,
                         lane.rank));
    }
  }

  void complete(Lane& lane, std::uint32_t op) {
    for (const std::uint32_t next : lane.successors[op]) {
      if (--lane.missing[next] == 0) {
        ready(lane, next);
      }
    }
  }

  bool send(Lane& lane) {
    if (lane.sends.empty()) {
      return false;
    }
    const std::uint32_t index = *lane.sends.begin();
    const Op& op = lane.program->ops()[index];
    lane.sends.erase(lane.sends.begin());
    if (op.source.buffer != k_gradient_buffer) {
      refuse(fmt::format("rank {} sends from memory that is not its gradient", lane.rank));
    }
    lane.block.steps.push_back({StepKind::send, op.part});
    // Nothing lies there: it had a turn since our last one, and receives before it sends.
    m_lanes[m_first[op.peer] + lane.number].arrived = &op;
    complete(lane, index);
    return true;
  }

  bool receive(Lane& lane) {
    if (!lane.arrived) {
      return false;
    }
    const Op& write = **lane.arrived;
    const std::uint32_t await = lane.await_of.at(write.tag);
    if (write.destination.buffer == k_gradient_buffer) {
      lane.block.steps.push_back({StepKind::receive, write.part});
    } else {
      require_sum(lane, await, write);
      lane.block.steps.push_back({StepKind::receive_sum, write.part});
    }
    lane.arrived.reset();
    lane.missing[await] = 0;
    complete(lane, await);
    return true;
  }

  /// What arrives is added to the gradient, and nothing else happens to it.
  static void require_sum(const Lane& lane, std::uint32_t await, const Op& write) {
    for (const std::uint32_t next : lane.successors[await]) {
      const Op& op = lane.program->ops()[next];
      if (op.kind != OpKind::reduce) {
        continue;
      }
      const std::span<const Slice> sources = lane.program->sources(op);
      const auto is = [&](const Slice& a, const Slice& b) {
        return a.buffer == b.buffer && a.offset == b.offset;
      };
      if (sources.size() == 2 && op.destination.buffer == k_gradient_buffer &&
          ((is(sources[0], op.destination) && is(sources[1], write.destination)) ||
           (is(sources[1], op.destination) && is(sources[0], write.destination)))) {
        return;
      }
    }
    refuse(fmt::format("rank {} adds part {} up otherwise than to its own gradient, one after "
                       "another",
                       lane.rank, write.part));
  }

  const Schedule& m_schedule;
  std::vector<Lane> m_lanes;
  std::vector<std::size_t> m_first; ///< by rank: its first lane
};

} // namespace

std::string_view name_of(StepKind kind) {
  switch (kind) {
  case StepKind::send:
    return "s";
  case StepKind::receive:
    return "r";
  case StepKind::receive_sum:
    return "rrc";
  }
  return "?";
}

std::vector<std::vector<ThreadBlock>> thread_blocks(const Schedule& schedule) {
  return Orderer(schedule).run();
}

} // namespace reckon::msccl
