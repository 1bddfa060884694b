// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/peer_fields.hpp"
#include "run/executor.hpp"

#include <cstdint>
#include <iosfwd>
#include <span>
#include <vector>

namespace reckon {

/// One rank in one iteration. Times are rank 0's monotonic clock.
struct RankSample {
  std::int64_t ready_ns = 0; ///< gradient filled, waiting for the others
  std::int64_t end_ns = 0;   ///< its last op was done
  std::int64_t begin_ns = 0; ///< the common start: begin_ns(), the same at all ranks
  std::int64_t start_ns = 0; ///< its own start, not before begin_ns
  std::int64_t reduce_ns = 0, wait_ns = 0, lane_ns = 0; ///< summed over the lanes
  std::int64_t update_ns = 0;                           ///< the optimizer's, summed over the lanes
  std::int64_t compute_ns = 0;      ///< of the busiest thread that computes in the passes
  std::int64_t cpu_ns = 0;          ///< of the whole process, user and system
  std::int64_t machine_busy_ns = 0; ///< of all processors, for all users; steps of 10 ms
  [[nodiscard]] PeerFields fields();
};

/// When the last rank was ready.
[[nodiscard]] std::int64_t last_ready_ns(std::span<const RankSample> samples);
/// When all ranks can know that all are ready, the last at `last_ready_ns`: `round_trip_ns` is the
/// longest one of a rank with rank 0, which gets the news and sends it to all.
[[nodiscard]] constexpr std::int64_t begin_ns(std::int64_t last_ready_ns,
                                              std::int64_t round_trip_ns) {
  return last_ready_ns + round_trip_ns;
}
/// Seconds of one iteration: from the common start to the last completion. Spreading the news that
/// all are ready is no communication of gradients, and on long ways takes as long as some of it.
[[nodiscard]] double iteration_seconds(std::span<const RankSample> samples);

/// The time that the machine's processors were not idle since it started, in ticks: the first line
/// of /proc/stat. 0 when that cannot be read.
[[nodiscard]] std::int64_t busy_ticks(std::istream& stat);

/// Processor time used so far.
struct ProcessorTimes {
  std::int64_t own_ns = 0;     ///< of this process, user and system
  std::int64_t machine_ns = 0; ///< of all processors, for all users; steps of 10 ms
  [[nodiscard]] static ProcessorTimes now();
};

/// Measures one rank in one iteration, from its construction.
class SampleMeter {
public:
  /// `now_ns`: on rank 0's clock; `computed_ns`: PassCrew::busy_ns().
  SampleMeter(std::int64_t now_ns, std::int64_t computed_ns, ProcessorTimes used);
  /// Ends the measurement, with the same clocks. `lanes`: use of their time.
  [[nodiscard]] RankSample sample(std::int64_t now_ns, std::int64_t computed_ns,
                                  ProcessorTimes used, std::span<const LaneTimes> lanes) const;

private:
  std::int64_t m_start_ns, m_computed_ns;
  ProcessorTimes m_used;
};

} // namespace reckon
