// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reckon {

/// The factor on each one's time while the other goes on; at least 1.
struct ContentionFactors {
  double compute = 1, communication = 1;
};

/// Equation 54: seconds until a computation and a communication that begin together are both done.
/// `compute_s`, `communication_s`: the times alone, not negative. Each is slower by its factor
/// while the other goes on; when one is done the other goes on at its own pace. With factors of 1
/// the longer of both, bit for bit. Throws Error{usage} when a time is negative or a factor below
/// 1.
[[nodiscard]] double contended_seconds(double compute_s, double communication_s,
                                       const ContentionFactors& factors);

} // namespace reckon
