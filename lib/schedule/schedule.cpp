// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace reckon {

bool RankProgram::keeps(std::uint32_t buffer) const {
  return std::find(state_buffers.begin(), state_buffers.end(), buffer) != state_buffers.end() ||
         std::any_of(parameters.begin(), parameters.end(),
                     [&](const ParameterRun& run) { return run.at.buffer == buffer; }) ||
         std::any_of(saved.begin(), saved.end(),
                     [&](const SavedRun& run) { return run.copy.buffer == buffer; });
}

std::uint32_t LaneProgram::append(const Op& op, std::span<const std::uint32_t> depends_on) {
  m_ops.push_back(op);
  m_dependencies.insert(m_dependencies.end(), depends_on.begin(), depends_on.end());
  m_begin.push_back(static_cast<std::uint32_t>(m_dependencies.size()));
  return static_cast<std::uint32_t>(m_ops.size() - 1);
}

std::uint32_t LaneProgram::append_write(std::uint32_t part, std::uint32_t peer, std::uint32_t tag,
                                        Slice source, Slice destination, std::uint64_t bytes,
                                        std::span<const std::uint32_t> depends_on) {
  return append({.kind = OpKind::write,
                 .peer = peer,
                 .tag = tag,
                 .part = part,
                 .source = source,
                 .destination = destination,
                 .bytes = bytes},
                depends_on);
}

std::uint32_t LaneProgram::append_await(std::uint32_t part, std::uint32_t peer, std::uint32_t tag) {
  return append({.kind = OpKind::await, .peer = peer, .tag = tag, .part = part}, {});
}

std::uint32_t LaneProgram::append_over(const Op& op, std::span<const Slice> sources,
                                       std::span<const std::uint32_t> depends_on) {
  Op complete = op;
  complete.first_source = static_cast<std::uint32_t>(m_sources.size());
  complete.source_count = static_cast<std::uint32_t>(sources.size());
  m_sources.insert(m_sources.end(), sources.begin(), sources.end());
  return append(complete, depends_on);
}

std::uint32_t LaneProgram::append_again(const LaneProgram& in, const Op& op,
                                        std::span<const std::uint32_t> depends_on) {
  return op.source_count > 0 ? append_over(op, in.sources(op), depends_on) : append(op, depends_on);
}

std::uint32_t LaneProgram::append_reduce(Op op, std::span<const Slice> sources,
                                         std::span<const std::uint32_t> depends_on) {
  op.kind = OpKind::reduce;
  return append_over(op, sources, depends_on);
}

void LaneProgram::expect(std::uint32_t await, Slice destination, std::uint64_t bytes) {
  m_ops[await].destination = destination;
  m_ops[await].bytes = bytes;
}

std::size_t LaneProgram::scale_delays(double factor) {
  std::size_t delays = 0;
  for (Op& op : m_ops) {
    if (op.kind == OpKind::delay) {
      op.duration_ns = std::llround(static_cast<double>(op.duration_ns) * factor);
      ++delays;
    }
  }
  return delays;
}

Located locate(const Schedule& schedule, std::uint32_t rank, Slice slice) {
  const RankProgram& program = schedule.ranks[rank];
  const std::size_t own = program.buffer_bytes.size();
  if (slice.buffer < own || slice.buffer - own >= program.peer_buffers.size()) {
    return {rank, slice};
  }
  const PeerBuffer& peer = program.peer_buffers[slice.buffer - own];
  return {peer.rank, {peer.buffer, slice.offset}};
}

std::string_view name_of(OpKind kind) {
  constexpr std::array<std::string_view, 12> k_names{
      "write",      "await",  "reduce", "copy",     "update", "to_fixed",
      "from_fixed", "narrow", "widen",  "subtract", "delay",  "sum_in_place"};
  return k_names.at(static_cast<std::size_t>(kind));
}

std::vector<DTypeRun> Schedule::gradient_runs() const {
  std::vector<DTypeRun> all = runs;
  for (DTypeRun& run : all) {
    const std::uint64_t times = wire ? size_of(DType::fp32) / size_of(*wire) : 1;
    run = {run.offset_bytes * times, run.bytes * times, wire ? DType::fp32 : run.dtype};
  }
  return all;
}

std::size_t slow_down(Schedule& schedule, std::size_t rank, double factor) {
  std::size_t delays = 0;
  for (LaneProgram& lane : schedule.ranks.at(rank).lanes) {
    delays += lane.scale_delays(factor);
  }
  return delays;
}

void expect_arrivals(Schedule& schedule) {
  std::map<std::tuple<std::size_t, std::size_t, std::uint32_t>, Op> writes; // rank, lane, tag
  const auto for_each = [&](OpKind kind, const auto& handle) {
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      for (std::size_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
        LaneProgram& lane = schedule.ranks[r].lanes[l];
        for (std::uint32_t i = 0; i < lane.ops().size(); ++i) {
          if (lane.ops()[i].kind == kind) {
            handle(r, l, lane, i);
          }
        }
      }
    }
  };
  for_each(OpKind::write,
           [&](std::size_t, std::size_t l, const LaneProgram& lane, std::uint32_t i) {
             const Op& op = lane.ops()[i];
             writes.emplace(std::tuple(op.peer, l, op.tag), op);
           });
  for_each(OpKind::await, [&](std::size_t r, std::size_t l, LaneProgram& lane, std::uint32_t i) {
    const auto write = writes.find({r, l, lane.ops()[i].tag});
    if (write != writes.end()) { // a schedule that was not proved may lack it
      lane.expect(i, write->second.destination, write->second.bytes);
    }
  });
}

Seconds delay_seconds(const RankProgram& rank) {
  std::int64_t longest_ns = 0;
  for (const LaneProgram& lane : rank.lanes) {
    std::int64_t lane_ns = 0;
    for (const Op& op : lane.ops()) {
      lane_ns += op.kind == OpKind::delay ? op.duration_ns : 0;
    }
    longest_ns = std::max(longest_ns, lane_ns);
  }
  return Seconds(static_cast<double>(longest_ns) * 1e-9);
}

Traffic traffic_of(const Schedule& schedule) {
  Traffic traffic;
  traffic.egress_bytes.resize(schedule.ranks.size());
  traffic.ingress_bytes.resize(schedule.ranks.size());
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (const LaneProgram& lane : schedule.ranks[rank].lanes) {
      for (const Op& op : lane.ops()) {
        if (op.kind == OpKind::write) {
          traffic.egress_bytes[rank] += op.bytes;
          traffic.ingress_bytes.at(op.peer) += op.bytes;
        } else if (op.kind == OpKind::sum_in_place) {
          for (const Slice& source : lane.sources(op)) {
            const std::size_t peer =
                locate(schedule, static_cast<std::uint32_t>(rank), source).rank;
            for (const std::size_t end : {rank, peer}) { // each reads what it writes back
              traffic.egress_bytes[end] += peer == rank ? 0 : op.bytes;
              traffic.ingress_bytes[end] += peer == rank ? 0 : op.bytes;
            }
          }
        }
      }
    }
  }
  return traffic;
}

} // namespace reckon
