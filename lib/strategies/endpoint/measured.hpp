// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "documents/workload.hpp"
#include "equations/contended.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace reckon {

/// Measured machines as endpoints, which share their resources between computation and
/// communication instead of dividing them.
struct MeasuredEndpoint {
  /// Configurations: no-overlap; dedicated and shared, where the profile has their factors; ideal.
  /// SMs and memory are unknown, so they count as unlimited, and layers must have seconds.
  Endpoint endpoint;
  std::map<std::string, ContentionFactors> factors; ///< by configuration: equation 53
};

/// `workers` machines of the profile (ranks of its one machine) in a ring, the torus of
/// `workers`x1x1. A node sends at its port's rate, on one machine at its share of the rate at which
/// all write to each other. Factors are those of the computation `operation`
/// (contention_factors()). Throws Error{input} where the profile lacks the rates or all of the
/// factors.
[[nodiscard]] MeasuredEndpoint
measured_endpoint(const Profile& profile, const std::string& operation, std::uint64_t workers);

/// Whether all computations of the workload's layers have measured seconds.
[[nodiscard]] bool says_seconds(const Workload& workload);

} // namespace reckon
