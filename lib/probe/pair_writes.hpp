// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/flows.hpp"

#include <cstdint>
#include <vector>

namespace reckon {

/// Up to here the latency and the processors are in a write's time: ranks of one computer must not
/// all measure at once.
inline constexpr std::uint64_t k_short_write_bytes = 65536;

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
