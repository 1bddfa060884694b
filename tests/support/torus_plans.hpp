// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/endpoint.hpp"
#include "documents/plan.hpp"
#include "strategies/torus/planner.hpp"
#include "support/equal_parts.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace reckon::test {

/// An endpoint of which only the links matter: what a node sends in each dimension, and a hop's
/// latency.
inline Endpoint torus_endpoint(const std::array<double, 3>& bytes_per_s,
                               const std::array<double, 3>& latency_s) {
  Endpoint endpoint;
  for (std::size_t d = 0; d < 3; ++d) {
    endpoint.rings[d] = {bytes_per_s[d], latency_s[d]};
  }
  return endpoint;
}

/// Equal parts of fp32 over a torus, as the planner gives them servers and ways.
inline Plan torus_plan(const std::string& strategy, const std::array<std::uint64_t, 3>& shape,
                       std::uint64_t parts, std::uint64_t part_bytes, std::uint64_t window,
                       int lanes = 1) {
  Plan plan;
  plan.strategy = strategy;
  plan.torus = TorusPlan{shape, {}};
  for (std::uint64_t r = 0; r < shape[0] * shape[1] * shape[2]; ++r) {
    PlanRank rank{.machine = "m", .worker = true, .lanes = lanes};
    plan.ranks.push_back(rank);
  }
  cut_equally(plan, parts, part_bytes, window);
  assign_torus(plan, torus_ways(strategy));
  return plan;
}

} // namespace reckon::test
