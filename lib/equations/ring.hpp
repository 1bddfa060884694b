// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reckon {

/// A ring all-reduce of n ranks in parts, each behind a full-duplex port. A part goes on 2 (n - 1)
/// times: n - 1 times to be added to, n - 1 times to be handed out. All of a rank's parts are under
/// way at once. Seconds, not negative.
struct RingSteps {
  double ranks = 2;         ///< n, at least 2
  double port_step_s = 0;   ///< that the busiest port needs for its parts of one step, handing out
  double reduce_step_s = 0; ///< or for all parts of one, or its rank to add them up, the longer
  double write_s = 0;       ///< that a port needs for one part
  double sum_s = 0;         ///< that a lane needs to add one up
  double latency_s = 0;     ///< until a part that has left is there
};

/// Equation 14b: seconds until every rank has all sums. In each step a port is busy with the parts
/// that it has, or waits for the first one to come: the longer of both.
[[nodiscard]] double ring_seconds(const RingSteps& steps);

} // namespace reckon
