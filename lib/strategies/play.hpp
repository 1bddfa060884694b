// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace reckon {

/// The links between the ranks of a job.
struct PlayNetwork : StationNetwork {
  /// Time of the first station that every write costs beside its bytes.
  double write_overhead_s = 0;
};

/// Seconds that a lane of `rank` is busy with a reduce, copy or other local op.
using OpCost = std::function<double(std::size_t rank, const Op& op)>;

/// When each rank's last op is done, in seconds from the start.
struct PlayResult {
  std::vector<double> rank_seconds;
  double total_seconds = 0;
};

/// Plays one iteration of a schedule on a model of the network: what the executor would do, on a
/// clock of its own. Deterministic. The schedule must be one that check() accepts (Error{internal}
/// when it comes to a halt).
[[nodiscard]] PlayResult play(const Schedule& schedule, const PlayNetwork& network,
                              const OpCost& cost);

} // namespace reckon
