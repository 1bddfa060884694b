// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/cluster_member.hpp"
#include "probe/flows.hpp"

#include <cstdint>
#include <vector>

namespace reckon {

/// Up to here the latency and the processors are in a write's time.
inline constexpr std::uint64_t k_short_write_bytes = 65536;

/// `flows`, disjoint, in groups that may be measured at once: all of them where writes are long; of
/// short ones no computer has more than half as many as processors.
[[nodiscard]] std::vector<std::vector<Flow>>
writes_at_once(const std::vector<Flow>& flows, std::uint64_t bytes, const ClusterMember& member);

/// `count` timed writes of `bytes` by each flow, which its receiver answers with 8 bytes. Before
/// them so many that what a rate limiter lets through after a pause is past, but not more than
/// `most_warm_up`. `first`: place in the source of the first one, so that data differ. A rank is in
/// one flow at most.
[[nodiscard]] FlowTask write_task(std::vector<Flow> flows, std::uint64_t bytes, std::uint64_t count,
                                  std::uint64_t most_warm_up, std::uint64_t first);

/// Seconds of the writes alone, from the post to the last byte, out of the round trips of a
/// write_task at its sender: the answer takes `answer_s`, a latency. A write takes no less than its
/// short answer, so never less than half of both.
[[nodiscard]] std::vector<double> write_seconds(const std::vector<double>& round_trip_s,
                                                double answer_s);

} // namespace reckon
