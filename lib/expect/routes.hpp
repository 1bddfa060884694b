// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "network/network.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace reckon::expect_detail {

/// The best shares of some routes on stations (equation 57).
struct Mix {
  double seconds_per_byte = 0; ///< 0: no station of known rate limits it
  std::vector<std::size_t> by; ///< the stations that are always busy
};

/// Traffic that can take one of several routes: the bytes of each station for each byte.
struct Choice {
  std::vector<Uses> routes;
};

/// Each choice is divided among its routes so that the busiest station is done soonest. `base`:
/// traffic that takes no choice.
[[nodiscard]] Mix best_mix(const std::vector<Station>& stations, const Uses& base,
                           const std::vector<Choice>& choices);

/// The cheapest route when a byte through station s costs prices[s].
using Cheapest = std::function<Uses(const std::vector<double>& prices)>;

/// The same for a single choice of more routes than can be listed: `cheapest` finds those that
/// count, one after the other.
[[nodiscard]] Mix best_mix(const std::vector<Station>& stations, const Cheapest& cheapest);

/// An order of 0 to n - 1 with the least sum of cost[a][b] over neighbours a, b, from 0 on;
/// `closed`: back to 0, too. Exact for at most 12; beyond, of the orders that keep the cyclic order
/// of 1 to n
/// - 1, forward or backward.
[[nodiscard]] std::vector<std::size_t> cheapest_order(const std::vector<std::vector<double>>& cost,
                                                      bool closed);

} // namespace reckon::expect_detail
