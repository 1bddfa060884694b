// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "documents/workload.hpp"
#include "equations/contended.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace reckon {

/// Machines that were measured as endpoints that share what they have between computation and
/// communication instead of dividing it.
struct MeasuredEndpoint {
  /// Configurations: no-overlap; dedicated and shared, where the profile has such factors; ideal.
  /// Nothing is known of SMs or memory: those are unlimited, and layers say how long they take.
  Endpoint endpoint;
  std::map<std::string, ContentionFactors> factors; ///< by configuration: equation 53
};

/// `workers` machines of the profile (ranks of its one machine) in a ring, the torus of
/// `workers`x1x1: a node sends what its port takes, of one machine its share of what all write to
/// each other. Factors are those of the computation `operation` (contention_factors()). Throws
/// Error{input} where the profile lacks the rates, or has none of the factors.
[[nodiscard]] MeasuredEndpoint
measured_endpoint(const Profile& profile, const std::string& operation, std::uint64_t workers);

/// Whether all that the workload's layers compute was measured in seconds.
[[nodiscard]] bool says_seconds(const Workload& workload);

} // namespace reckon
