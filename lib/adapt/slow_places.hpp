// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/report.hpp"
#include "schedule/schedule.hpp"
#include "schedule/timeline.hpp"
#include "strategies/plan_network.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace reckon {

/// What kept the ranks busy in one iteration, as measured or as a play has it.
struct Observation {
  explicit Observation(std::size_t rank_count)
      : ranks(rank_count), busy_s(rank_count * (rank_count + 2), 0),
        quickest_s(rank_count * rank_count, std::numeric_limits<double>::infinity()) {}
  std::size_t ranks;
  double seconds = 0; ///< until the last op was done
  std::vector<double> busy_s;
  /// Places in busy_s. Seconds in which at least one write from a rank to another was under way:
  /// from its post to its arrival.
  [[nodiscard]] std::size_t writes(std::size_t from, std::size_t to) const {
    return from * ranks + to;
  }
  /// Of sums, copies and steps, all lanes together.
  [[nodiscard]] std::size_t local(std::size_t rank) const { return ranks * ranks + rank; }
  [[nodiscard]] std::size_t passes(std::size_t rank) const { return ranks * (ranks + 1) + rank; }
  /// [writes(from, to)]: of the shortest write, from its post to its arrival; infinite without any.
  std::vector<double> quickest_s;
};

/// `timelines`: of this schedule, from the iteration's beginning on.
[[nodiscard]] Observation observe(const Schedule& schedule, const RankTimelines& timelines);

/// A place that is slower than the profile says.
struct SlowPlace {
  SlowKind kind = SlowKind::port;
  std::size_t rank = 0, peer = 0, station = 0;
  double factor = 1;  ///< that it keeps of its rate, below 1
  double delay_s = 0; ///< of a delay: what each write takes longer
};

/// Why an iteration took longer than played.
struct Explanation {
  std::vector<SlowPlace> places; ///< the one that explains most first; none: nothing explains it
  double planned_seconds = 0;    ///< played with all as the profile has it
  double explained_seconds = 0;  ///< played with the slow places
  double measured_seconds = 0;
};

/// Finds the places whose slowness explains what was seen: each suspect's factor is the one with
/// which a play of the schedule keeps the ranks busy most nearly as they were. Up to three places,
/// one after the other, as long as each explains a good part of what is left; all stations alike
/// where that explains as much by itself. `network`: that the plan's prediction is played on.
/// Throws Error{internal} as play() does.
[[nodiscard]] Explanation explain(const Schedule& schedule, const PlanNetwork& network,
                                  const Observation& seen);

/// Bytes per second of the place in the network, were it not slow; 0 for processors, passes and
/// delays.
[[nodiscard]] double planned_rate(const PlanNetwork& network, const SlowPlace& place);

} // namespace reckon
