// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace reckon {

/// The links between the ranks of a job. A station serves bytes in the order in which they come: a
/// port's egress, a port's ingress, a rack's uplink. A write passes the stations of its path one
/// after the other without being stored in between (cut-through).
struct PlayNetwork {
  std::vector<double> station_bytes_per_s;
  /// [from][to]: the stations in order. Empty between ranks that share memory.
  std::vector<std::vector<std::vector<std::uint32_t>>> paths;
  double latency_s = 0; ///< of a path, on top of the stations' time
  double write_overhead_s =
      0; ///< time of the first station that every write costs beside its bytes
  /// Bytes that one connection may have in the first station's queue: longer writes of several
  /// connections go side by side in pieces of this size, shorter ones whole, in the order posted.
  std::uint64_t quantum_bytes = 65536;
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
