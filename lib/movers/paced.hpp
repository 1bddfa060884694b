// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "core/stations.hpp"
#include "movers/mover.hpp"

#include <cstdint>
#include <memory>

namespace reckon {

/// How well an emulation kept its times, of all ranks of a job together.
struct PacingRecord {
  std::uint64_t writes = 0; ///< that arrived
  /// Writes that this machine moved later than the emulated machine would have: it is not fast
  /// enough for them.
  std::uint64_t late = 0;
  double worst_late_s = 0; ///< of those
};

/// Moves bytes by `inner`, at the times that `network` gives: an emulation of other links on this
/// machine (COARSE, section IV-B: delay injection).
///
/// Each station is a time until which it is busy, in memory that all ranks share. A write goes
/// through them in pieces of network.quantum_bytes, one piece of a connection in its first station
/// at a time, as play() does it: the same table gives the same times. When its last piece has found
/// its place, `inner` gets the write; the receiver keeps the arrival back until it is due, and the
/// sender the completion until the last piece has left the first station. What `inner` takes
/// longer is late and is counted.
///
/// Ranks are as many as the network's; all of them on one machine (connect() throws
/// Error{unavailable} otherwise), all paced. `self` is this rank. `record` (may be null) is filled
/// in when the mover goes, and outlives it, as does `clock`. No file is left behind, whoever dies.
[[nodiscard]] std::unique_ptr<Mover> make_paced_mover(std::unique_ptr<Mover> inner, int self,
                                                      StationNetwork network, PacingRecord* record,
                                                      const Clock& clock);

} // namespace reckon
