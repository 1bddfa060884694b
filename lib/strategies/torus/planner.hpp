// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/planner.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace reckon {

/// "torus": ACE's four phases, reduce-scatter in the local rings, all-reduce in the vertical and
/// then in the horizontal ones, all-gather in the local ones. "torus_scatter": all but the last of
/// the dimensions scatter: fewer bytes.
[[nodiscard]] bool is_torus_strategy(std::string_view name);

/// A way, and its share of the gradient.
struct SharedWay {
  TorusWay way;
  double share = 0;
};

/// The ways of a strategy, each both ways round the rings: of "torus_scatter" local rings first,
/// and then half of the gradient through either other dimension first.
[[nodiscard]] std::vector<SharedWay> torus_ways(std::string_view strategy);

/// Equation 44a: the orders of the dimensions in which scattering keeps the links busy for the
/// shortest time, with their shares. `ring_bytes_per_s`: what a node sends in the ring of each
/// dimension, both ways together.
[[nodiscard]] std::vector<SharedWay> best_scatter(const std::array<std::uint64_t, 3>& shape,
                                                  const std::array<double, 3>& ring_bytes_per_s);

/// Gives every part a server and a way, both in turn, so that neighbours in the order keep
/// different rings busy and each way has its share, and a lane. Fills in the plan's ways and its
/// ranks' shares.
void assign_torus(Plan& plan, const std::vector<SharedWay>& ways);

/// Plans the all-reduce of workers that are the nodes of a torus of this shape. Where the profile
/// describes an endpoint (ACE) the links of its torus lie between them, else the network between
/// the profile's machines: the same plan, in which any two can be neighbours. Throws Error{usage}
/// for options that torus plans lack, and as make_plan().
[[nodiscard]] Plan plan_torus(const PlanInputs& inputs, const PlanOptions& options,
                              const std::array<std::uint64_t, 3>& shape);

} // namespace reckon
