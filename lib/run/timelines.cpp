// SPDX-License-Identifier: Apache-2.0
#include "run/timelines.hpp"

#include "launch/peer_error.hpp"
#include "launch/peer_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace reckon {
namespace {

/// When each op of a rank began and ended, lane after lane.
struct Times {
  std::int64_t first_ns = 0;
  std::vector<std::uint64_t> since_ns; ///< after the first
  [[nodiscard]] PeerFields fields() { return {{"first_ns", &first_ns}, {"since_ns", &since_ns}}; }
};

Times times_of(const RankTimeline& timeline) {
  std::vector<std::int64_t> all;
  for (const std::vector<OpSpan>& lane : timeline) {
    for (const OpSpan& span : lane) {
      all.insert(all.end(), {span.begin_ns, span.end_ns});
    }
  }
  Times times;
  times.first_ns = all.empty() ? 0 : std::ranges::min(all);
  for (const std::int64_t time : all) {
    times.since_ns.push_back(static_cast<std::uint64_t>(time - times.first_ns));
  }
  return times;
}

} // namespace

RankTimelines gather_timelines(Rendezvous& rendezvous, const Schedule& schedule,
                               const RankTimeline& mine, Seconds limit) {
  RankTimelines all;
  for (const Times& times : gather(rendezvous, times_of(mine), limit)) {
    const std::size_t number = all.size();
    RankTimeline& rank = all.emplace_back();
    auto at = times.since_ns.begin();
    std::size_t expected = 0;
    for (const LaneProgram& lane : schedule.ranks[number].lanes) {
      expected += 2 * lane.ops().size();
    }
    if (times.since_ns.size() != expected) {
      throw PeerError(fmt::format("rank {} sent {} times of its ops, and the plan has {}", number,
                                  times.since_ns.size(), expected));
    }
    for (const LaneProgram& lane : schedule.ranks[number].lanes) {
      std::vector<OpSpan>& spans = rank.emplace_back();
      for (std::size_t i = 0; i < lane.ops().size(); ++i) {
        const std::int64_t begin = times.first_ns + static_cast<std::int64_t>(*at++);
        spans.push_back({begin, times.first_ns + static_cast<std::int64_t>(*at++)});
      }
    }
  }
  return all;
}

} // namespace reckon
