// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "strategies/play.hpp"

#include <cstddef>
#include <optional>

namespace reckon {

/// Seconds that the first `parts` parts of a plan over a torus take on its links (torus_between()):
/// as play() has it for the lowered plan where each rank has one lane, but without a schedule and
/// with hardly more than one event a write, for plans of millions of them. Sums take no time. A
/// link serves writes in the order posted, whichever lane they are of.
[[nodiscard]] double play_torus(const Plan& plan, const PlayNetwork& links, std::size_t parts);

/// Seconds of the whole plan for at most so many writes played. Of more parts two beginnings are
/// played, and the rest goes on at the pace between them; not where passes are played (nullopt),
/// nor where so many writes are no beginning.
[[nodiscard]] std::optional<double> torus_seconds(const Plan& plan, const PlayNetwork& links,
                                                  double most_writes);
/// Whether that has a value.
[[nodiscard]] bool can_play_torus(const Plan& plan, double most_writes);

} // namespace reckon
