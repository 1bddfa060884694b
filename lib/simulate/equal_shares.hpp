// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulate/player.hpp"

#include <memory>

namespace reckon {

/// Whether a flow of this graph is never on several stations at once, so that what it gets does not
/// depend on any other station than its own.
[[nodiscard]] bool stations_are_apart(const SimGraph& graph);

/// The graph's stations without a solver: flows at a station all have the same share of it, so that
/// each station has one number, what every flow there has been given since it was last idle, and a
/// flow ends when that has grown by its bytes. A start or an end takes the logarithm of the flows,
/// whatever else is under way. Times are exact but for rounding; the graph's precision is not
/// needed. Only for graphs whose stations are apart.
[[nodiscard]] std::unique_ptr<FlowEngine> make_equal_shares_engine(const SimGraph& graph);

} // namespace reckon
