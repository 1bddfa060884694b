// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/racks.hpp"

#include <functional>
#include <random>
#include <vector>

namespace reckon {

/// One look at a division into racks.
struct RackCheck {
  RoundRates across; ///< pairs of different racks, all at once
  RoundRates beside; ///< right after: pairs with no other's uplink traffic in their way, which are
                     ///< those within racks, and pairs across that were measured alone
};

/// `rack_of` without the borders that do not show in the checks. Each pair across is compared with
/// the same two machines beside it, both as shares of what their ports can do: a thin uplink slows
/// down what crosses it together with others, busy machines are as slow with anybody. Two racks
/// whose pairs reach, in the median, k_hindered of what their machines do beside are one. Racks of
/// which no pair was checked stay as they are.
[[nodiscard]] std::vector<int> confirmed_racks(const std::vector<int>& rack_of,
                                               const std::vector<RackCheck>& checks,
                                               const std::vector<double>& port_bytes_per_s);

/// Measures disjoint pairs, all at once and both ways.
using MeasureRound = std::function<RoundRates(const Pairing&)>;

struct RackSearch {
  std::vector<int> rack_of; ///< as of find_racks()
  int looked_like = 1;      ///< racks, before confirmed_racks()
  bool settled = true; ///< false: the division went on changing, or there was no time for checks
};

/// Divides the machines of `rounds` and checks the division three times, from the beginning where
/// that changes it (of what goes on changing the fifth stands); then confirmed_racks(). Ends early
/// where there is one rack, or when it is `over`. `rounds` gets what was measured.
///
/// A machine alone in its rack has nobody beside it: two of them at most are measured with nothing
/// else under way, and meet another rack in each check.
[[nodiscard]] RackSearch search_racks(std::vector<RoundRates>& rounds,
                                      const std::vector<double>& port_bytes_per_s,
                                      std::mt19937_64& random, const MeasureRound& measure,
                                      const std::function<bool()>& over);

} // namespace reckon
