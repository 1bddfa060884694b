// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/mover.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace reckon {

/// One mover made of two: `inside` between ranks on the same machine, `between` for all others.
/// `machines` has the machine of every rank of the job; equal numbers mean the same machine. A
/// rank's memory is that of `inside`, adopted by `between`; `inside` may be null for a rank that is
/// alone on its machine, whose memory is then that of `between`. Memory out of the processor's
/// reach, a GPU's, stays that of `inside` alone: no rank of another machine can write to it or be
/// written to from it. Lane i of the ranks polls lane i of both, and sleeps on both at once.
///
/// connect() throws Error{unavailable} where ranks with equal numbers are not on one machine and
/// network; ranks of several machines may share one.
[[nodiscard]] std::unique_ptr<Mover> make_levels_mover(std::unique_ptr<Mover> inside,
                                                       std::unique_ptr<Mover> between,
                                                       std::vector<std::size_t> machines);

} // namespace reckon
