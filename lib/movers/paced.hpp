// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "core/stations.hpp"
#include "movers/mover.hpp"

#include <cstdint>
#include <memory>

namespace reckon {

/// The quality of an emulation's times, over all ranks of a job.
struct PacingRecord {
  std::uint64_t writes = 0; ///< that arrived
  /// Writes that took this machine longer than the emulated machine: it is not fast enough for
  /// them.
  std::uint64_t late = 0;
  double worst_late_s = 0; ///< largest lateness
};

/// Moves bytes by `inner`, at the times of `network`: an emulation of other links on this machine
/// (COARSE, section IV-B: delay injection).
///
/// Each station is a time until which it is busy, in memory that all ranks share. A write goes
/// through them in pieces of network.quantum_bytes, one piece of a connection in its first station
/// at a time, as in play(): the same table gives the same times. When its last piece has its place,
/// `inner` gets the write; the receiver holds the arrival back until it is due, and the sender the
/// completion until the last piece has left the first station. A write that takes `inner` longer is
/// late and is counted.
///
/// Ranks are as many as the network's; all of them on one machine (connect() throws
/// Error{unavailable} otherwise), all paced. `self` is this rank. `record` (may be null) is filled
/// in when the mover is destroyed, and outlives it, as does `clock`. No file is left behind,
/// whichever rank dies.
[[nodiscard]] std::unique_ptr<Mover> make_paced_mover(std::unique_ptr<Mover> inner, int self,
                                                      StationNetwork network, PacingRecord* record,
                                                      const Clock& clock);

} // namespace reckon
