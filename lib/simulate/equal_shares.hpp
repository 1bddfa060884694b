// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulate/player.hpp"

#include <memory>

namespace reckon {

/// Whether a flow of this graph is never on several stations at once, so that its rate depends on
/// its own station only.
[[nodiscard]] bool stations_are_apart(const SimGraph& graph);

/// The graph's stations without a solver. All flows at a station have the same share, so each
/// station has one number, the bytes that every flow there has been given since the station was
/// last idle; a flow ends when that number has grown by its bytes. A start or an end takes time
/// logarithmic in the flows. Times are exact except for rounding; the graph's precision is not
/// needed. Only for graphs with independent stations.
[[nodiscard]] std::unique_ptr<FlowEngine> make_equal_shares_engine(const SimGraph& graph);

} // namespace reckon
