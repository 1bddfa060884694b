// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace reckon {

/// Begin and end of each op of a schedule, in nanoseconds: a write from its post until its source
/// may be overwritten, an await when it was done, all others while they are worked on.
struct OpSpan {
  std::int64_t begin_ns = 0, end_ns = 0;
  bool operator==(const OpSpan&) const = default;
};

using RankTimeline = std::vector<std::vector<OpSpan>>; ///< [lane][op]
using RankTimelines = std::vector<RankTimeline>;       ///< [rank]

} // namespace reckon
