// SPDX-License-Identifier: Apache-2.0
#include "equations/contended.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

namespace reckon {

double contended_seconds(double compute_s, double communication_s,
                         const ContentionFactors& factors) {
  if (!(compute_s >= 0 && communication_s >= 0)) {
    fail(ErrorKind::usage, fmt::format("a computation of {} s beside a communication of {} s: "
                                       "times are not negative",
                                       compute_s, communication_s));
  }
  if (!(factors.compute >= 1 && factors.communication >= 1)) {
    fail(ErrorKind::usage,
         fmt::format("contention factors {} and {}: nothing gets faster by what runs beside it",
                     factors.compute, factors.communication));
  }
  const double computing = compute_s * factors.compute;
  const double communicating = communication_s * factors.communication;
  // Of the one that ends last: all it takes alone, and what it lost while the other went on.
  return computing <= communicating ? communication_s + computing * (1 - 1 / factors.communication)
                                    : compute_s + communicating * (1 - 1 / factors.compute);
}

} // namespace reckon
