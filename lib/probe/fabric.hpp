// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "probe/campaign.hpp"
#include "probe/fabric_crew.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

struct FabricProbeOptions : FabricCrewOptions {
  std::string machine;                 ///< its id in the profile
  std::vector<std::string> transports; ///< names of available_transports()
  std::vector<std::uint64_t> sizes;    ///< for fabric_write; empty: curve_sizes()
  bool thorough = false;               ///< all sizes, directions and windows
  int max_pairs = 0;                   ///< for fabric_aggregate; 0: half the processors, at least 4
  Seconds hang_limit{5}; ///< limit beyond a cell's budget; then its processes are killed
};

/// What processes of this machine get from each transport, through the same movers, waits and steps
/// as the executor's lanes:
///
/// fabric_write_window   seconds per write of 1 MiB, both ways, by writes in flight; the
///                       others have 4 of them unless they say otherwise.
/// fabric_write_latency  seconds from the start of an 8-byte write to its arrival seen by a peer
///                       that slept: half a round trip.
/// fabric_write          seconds per write by size, one_way and two_way (both ranks send; each
///                       direction is timed by itself, under the other's load, and averaged). A
///                       series of writes is timed from its begin until the receiver has the last
///                       one; sources and targets go round 64 MiB and more.
/// fabric_aggregate      bytes per second of all pairs together, each sender moving the same number
///                       of bytes: total / (last end - first begin), an end being when the receiver
///                       has everything. Targets go round as the sources do. With as many writes in
///                       flight, 4, 8, ... 32, as make them no faster any more (in_flight says how
///                       many); also of one pair whose processes share one processor (threads: 1).
///
/// The first and last writes of each series are checked afterwards, outside of the time. What hangs
/// or dies is killed, its cell says so, and the next cell starts new processes. A campaign for each
/// transport, which keeps its processes between cells.
[[nodiscard]] std::vector<Campaign> fabric_campaigns(const FabricProbeOptions& options,
                                                     const Clock& clock);

} // namespace reckon
