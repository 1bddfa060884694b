// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/planner.hpp"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace reckon {

/// "torus": ACE's four phases, reduce-scatter in the local rings, all-reduce in the vertical and
/// then in the horizontal ones, all-gather in the local ones. "torus_scatter": the first of the two
/// all-reduces is a reduce-scatter as well, and parts alternate which of them is first: fewer
/// bytes.
[[nodiscard]] bool is_torus_strategy(std::string_view name);

/// The ways of a strategy, each both ways round the rings.
[[nodiscard]] std::vector<TorusWay> torus_ways(std::string_view strategy);

/// Gives every part a server and a way, both in turn, so that neighbours in the order keep
/// different rings busy, and a lane. Fills in the ranks' shares.
void assign_torus(Plan& plan);

/// Plans the all-reduce of workers that are the nodes of a torus of this shape. Where the profile
/// describes an endpoint (ACE) the links of its torus lie between them, else the network between
/// the profile's machines: the same plan, in which any two can be neighbours. Throws Error{usage}
/// for options that torus plans lack, and as make_plan().
[[nodiscard]] Plan plan_torus(const PlanInputs& inputs, const PlanOptions& options,
                              const std::array<std::uint64_t, 3>& shape);

} // namespace reckon
