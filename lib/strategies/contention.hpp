// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "equations/contended.hpp"

#include <string>

namespace reckon {

class CostModel;

/// How passes with this computation and the traffic slow each other.
struct ContentionRequest {
  std::string operation; ///< the name in cells of the profile: "gemm_256"
  bool dedicated = true; ///< lanes and computation use separate processors, or both use all
};

/// From the profile's cells of `operation`: medians of the factors over all communications of the
/// fewest threads (dedicated: the others compute) or of the most (shared); never below 1. Throws
/// Error{input} when the profile has none.
[[nodiscard]] ContentionFactors contention_factors(const Profile& profile,
                                                   const ContentionRequest& request);

/// Equation 55: equation 54 on the prediction of an iteration with passes (add_passes()). The
/// hidden part of `traffic_s`, the traffic alone, goes on beside the passes after the first
/// layer's, and both stretch. The additional time is a term of its own.
void add_contention(Prediction& prediction, const Passes& passes, double traffic_s,
                    const ContentionFactors& factors);
/// Equation 56: add_contention() where the ranks share one machine and `passes` say how many
/// threads a worker computes with. Threads and lanes take turns on the machine's processors; where
/// each has its own, nothing is added.
void share_processors(Prediction& prediction, const Passes& passes, double traffic_s,
                      const CostModel& model);

} // namespace reckon
