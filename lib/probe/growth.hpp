// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace reckon {

/// A rate grows only by more than this fraction; less is noise.
inline constexpr double k_growth = 0.04;

/// The least load, of `first`, twice that, four times that and so on up to `most`, with which no
/// rate grows any more: twice as much brings each at most k_growth more. A result below `most` has
/// been confirmed by that further try; `most` itself has not. `first` > 0, in the unit of
/// `rates_of`, which returns the same number of rates each time, in bytes per second, and is called
/// once for each load.
[[nodiscard]] double
grow_until_steady(double first, double most,
                  const std::function<std::vector<double>(double load)>& rates_of);

/// The same for a machine whose speed changes by itself: of `loads`, ascending and not empty, the
/// least that carries at most k_growth less than the best of them. All are tried in turns, round
/// after round while `again` of the rounds so far says so, and each counts by the median of its rate over the first load's in the same round: a
/// change of speed spoils one round only.
[[nodiscard]] double least_of_the_fastest(std::span<const double> loads,
                                          const std::function<bool(int rounds)>& again,
                                          const std::function<double(double load)>& rate_of);

} // namespace reckon
