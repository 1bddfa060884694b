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
  /// Time of the first station for every write, beside its bytes.
  double write_overhead_s = 0;
  /// A cut write waits for room of this many bytes in the first station's queue, at most
  /// quantum_bytes. 0: it takes whatever room there is; then short writes between long ones cut
  /// these into ever shorter pieces, and a play of the same bytes can have twenty times the events.
  std::uint64_t least_piece_bytes = 0;
  /// Makes pieces of `quantum` bytes, and no shorter piece than half of it except a write's last.
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
  /// The time in which the middle half of all writes arrived: twice that is their time without the
  /// filling and emptying of the network.
  double middle_half_seconds = 0;
};

/// Plays one iteration of a schedule on a model of the network, as the executor would run it, on a
/// clock of its own. Deterministic. The schedule must be one that check() accepts (Error{internal}
/// when it comes to a halt). `timeline`, if given, gets the begin and end of each op. Throws
/// Error{operation} when interrupted().
[[nodiscard]] PlayResult play(const Schedule& schedule, const PlayNetwork& network,
                              const OpCost& cost, RankTimelines* timeline = nullptr);

} // namespace reckon
