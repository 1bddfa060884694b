// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/proxies/job.hpp"
#include "strategies/proxies/ways.hpp"
#include "strategies/strategy.hpp"

#include <cstdint>
#include <optional>

namespace reckon {

/// What a play may cost: of more writes there is none, and the formula's time stands; more pieces
/// make them longer.
struct PlayEffort {
  double most_writes = 0, most_pieces = 0;
};
/// For the plan that is taken: pieces as long as a connection's queue.
inline constexpr PlayEffort k_thorough{200'000, 1e18};
/// For comparing plans.
inline constexpr PlayEffort k_quick{80'000, 80'000};

/// Gives a plan of trees a window, and what follows from it: the bytes of each rank, the bound by
/// what lies between the ranks, and the predicted time, played where the effort allows.
void predict_trees(Plan& plan, const ProxyJob& job, const ProxyWays& ways,
                   std::uint64_t window_parts, const PlayEffort& effort);

/// What a checkpoint of a plan with optimizer steps costs (equation 20b); nothing where that is not
/// known, or too much to play.
[[nodiscard]] std::optional<Quantity> checkpoint_cost(const Plan& plan, const ProxyJob& job,
                                                      const ProxyWays& ways);

/// What the ranks of a tree plan move and add up.
[[nodiscard]] Load load_of_trees(const Plan& plan, const Schedule& schedule);

} // namespace reckon
