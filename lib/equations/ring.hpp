// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reckon {

/// A ring all-reduce of n ranks in parts, each behind a full-duplex port. A part moves 2 (n - 1)
/// times: n - 1 times to be summed, n - 1 times to be handed out. All of a rank's parts are under
/// way at once. Seconds, not negative.
struct RingSteps {
  double ranks = 2;       ///< n, at least 2
  double port_step_s = 0; ///< of the busiest port for its parts of one step, handing out
  double reduce_step_s =
      0;                ///< the same for the parts of a summing step, or the rank's sums if longer
  double write_s = 0;   ///< of a port for one part
  double sum_s = 0;     ///< of a lane to add one part
  double latency_s = 0; ///< from the departure of a part to its arrival
};

/// Equation 14b: seconds until every rank has all sums. In each step a port is busy with its parts,
/// or waits for the first one to arrive: the longer of both.
[[nodiscard]] double ring_seconds(const RingSteps& steps);

} // namespace reckon
