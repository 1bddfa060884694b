// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "schedule/schedule.hpp"
#include "schedule/timeline.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace reckon {

/// The links between the ranks of a job.
struct PlayNetwork : StationNetwork {
  /// Time of the first station that every write costs beside its bytes.
  double write_overhead_s = 0;
  /// A write that is cut waits for room of so many bytes in the first station's queue, at most
  /// quantum_bytes. 0: it takes whatever room there is; then short writes between long ones cut
  /// these into ever shorter pieces, and a play of the same bytes can have twenty times the events.
  std::uint64_t least_piece_bytes = 0;
  /// Makes pieces of `quantum` bytes, and none shorter than half of it but for a write's last.
  void cut_evenly(std::uint64_t quantum) {
    quantum_bytes = quantum;
    least_piece_bytes = quantum / 2;
  }
};

/// Seconds that a lane of `rank` is busy with a reduce, copy or other local op.
using OpCost = std::function<double(std::size_t rank, const Op& op)>;

/// When each rank's last op is done, in seconds from the start.
struct PlayResult {
  std::vector<double> rank_seconds;
  double total_seconds = 0;
  /// While the middle half of all writes arrived: twice that is what they take without the time in
  /// which the network fills and empties.
  double middle_half_seconds = 0;
};

/// Plays one iteration of a schedule on a model of the network: what the executor would do, on a
/// clock of its own. Deterministic. The schedule must be one that check() accepts (Error{internal}
/// when it comes to a halt). `timeline`, where it is given, gets when each op began and ended.
/// Throws Error{operation} when interrupted().
[[nodiscard]] PlayResult play(const Schedule& schedule, const PlayNetwork& network,
                              const OpCost& cost, RankTimelines* timeline = nullptr);

} // namespace reckon
