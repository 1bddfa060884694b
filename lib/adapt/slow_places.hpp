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

/// The busy times of the ranks in one iteration, measured or played.
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
  /// Seconds of sums, copies and steps, all lanes together.
  [[nodiscard]] std::size_t local(std::size_t rank) const { return ranks * ranks + rank; }
  [[nodiscard]] std::size_t passes(std::size_t rank) const { return ranks * (ranks + 1) + rank; }
  /// [writes(from, to)]: the shortest write, from its post to its arrival; infinite without a
  /// write.
  std::vector<double> quickest_s;
};

/// `timelines`: of this schedule, from the iteration's beginning on.
[[nodiscard]] Observation observe(const Schedule& schedule, const RankTimelines& timelines);

/// A place that is slower than the profile says.
struct SlowPlace {
  SlowKind kind = SlowKind::port;
  std::size_t rank = 0, peer = 0, station = 0;
  double factor = 1;  ///< fraction of its rate that is left, below 1
  double delay_s = 0; ///< for a delay: the additional time of each write
};

/// Why an iteration took longer than played.
struct Explanation {
  std::vector<SlowPlace> places; ///< the one that explains most first; empty: nothing explains it
  double planned_seconds = 0;    ///< played with the profile's rates
  double explained_seconds = 0;  ///< played with the slow places
  double measured_seconds = 0;
};

/// Finds the places whose slowness explains the busy times: each suspect's factor is the one whose
/// play comes nearest to them. Up to three places, one after the other, as long as each explains a
/// good part of the rest; all stations alike where that explains as much by itself. `network`: the
/// one on which the plan's prediction is played. Throws Error{internal} as play() does.
[[nodiscard]] Explanation explain(const Schedule& schedule, const PlanNetwork& network,
                                  const Observation& seen);

/// The normal rate of the place in the network, bytes per second; 0 for processors, passes and
/// delays.
[[nodiscard]] double planned_rate(const PlanNetwork& network, const SlowPlace& place);

} // namespace reckon
