// SPDX-License-Identifier: Apache-2.0
#include "schedule/in_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace reckon {
namespace {

/// (sum in place, peer) of a lane: who is told when it is done, in order.
std::vector<std::pair<std::uint32_t, std::uint32_t>> told_by(const LaneProgram& lane) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> told;
  for (std::uint32_t o = 0; o < lane.ops().size(); ++o) {
    for (const std::uint32_t before : lane.dependencies(o)) {
      if (lane.ops()[o].kind == OpKind::write && lane.ops()[before].kind == OpKind::sum_in_place) {
        told.emplace_back(before, lane.ops()[o].peer);
      }
    }
  }
  std::sort(told.begin(), told.end());
  return told;
}

bool waits_for(const LaneProgram& lane, std::uint32_t op, std::uint32_t peer) {
  const std::span<const std::uint32_t> before = lane.dependencies(op);
  return std::any_of(before.begin(), before.end(), [&](std::uint32_t d) {
    return lane.ops()[d].kind == OpKind::await && lane.ops()[d].peer == peer;
  });
}

} // namespace

std::vector<std::string> in_place_faults(const Schedule& schedule) {
  std::vector<std::string> faults;
  for (std::uint32_t r = 0; r < schedule.ranks.size(); ++r) {
    for (std::uint32_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
      const LaneProgram& lane = schedule.ranks[r].lanes[l];
      const auto told = told_by(lane);
      for (std::uint32_t o = 0; o < lane.ops().size(); ++o) {
        const Op& op = lane.ops()[o];
        if (op.kind != OpKind::sum_in_place) {
          continue;
        }
        const auto fault = [&](const std::string& what) {
          faults.push_back(fmt::format("rank {} lane {} op {} (sum_in_place, part {}): {}", r, l, o,
                                       op.part, what));
        };
        if (op.source_count == 0 || op.bytes % size_of(op.dtype) != 0) {
          fault("sums nothing, or not whole elements");
        }
        std::set<std::pair<std::uint32_t, std::uint32_t>> buffers;
        for (const Slice& s : lane.sources(op)) {
          const Located at = locate(schedule, r, s);
          if (!buffers.emplace(at.rank, at.at.buffer).second) {
            fault(fmt::format("has two operands in buffer {} of rank {}", at.at.buffer, at.rank));
          }
          if (at.rank != r && !waits_for(lane, o, at.rank)) {
            fault(fmt::format("does not wait for the word of rank {}, in whose memory it sums",
                              at.rank));
          }
          if (at.rank != r &&
              !std::binary_search(told.begin(), told.end(), std::pair(o, at.rank))) {
            fault(fmt::format("rank {}, in whose memory it sums, is not told when it is done",
                              at.rank));
          }
        }
      }
    }
  }
  return faults;
}

} // namespace reckon
