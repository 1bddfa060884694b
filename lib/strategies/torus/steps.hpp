// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "strategies/torus/places.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reckon {

/// One of the things that a node does for a part, in the ring of a dimension. `add` and `pass_on`
/// wait until what the node has handed on before is gone: that is of its gradient, which they
/// change, here or by what comes back.
struct TorusStep {
  enum class Kind : std::uint8_t {
    add,     ///< waits for the sum of the nodes before, and adds it to its own
    pass_on, ///< writes that to the next node
    take,    ///< waits for the sum of the whole ring
    hand_on, ///< writes that to the next node
  };
  Kind kind = Kind::add;
  std::uint8_t dimension = 0;
};

/// What `rank` does for a part of `server` that goes this way, one after the other: what lowered
/// plans consist of, and what is played. A dimension has each kind of step at most once.
[[nodiscard]] std::vector<TorusStep> torus_steps(const TorusPlaces& places, const TorusWay& way,
                                                 std::uint64_t server, std::uint64_t rank);

} // namespace reckon
