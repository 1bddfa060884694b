// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace reckon {

/// By more than this a rate grows; less is noise.
inline constexpr double k_growth = 0.04;

/// The least load, of `first`, twice that, four times that and so on up to `most`, with which no
/// rate grows any more: twice as much brings each at most k_growth more. One that stops short of
/// `most` has been confirmed by that further try; `most` itself is taken as it is. `first` > 0, in
/// whatever unit `rates_of` takes, which gives as many rates each time, in bytes per second, and is
/// called once for each load.
[[nodiscard]] double
grow_until_steady(double first, double most,
                  const std::function<std::vector<double>(double load)>& rates_of);

/// The same of a machine whose speed changes by itself: of `loads`, ascending and not empty, the
/// least that carries at most k_growth less than the best of them. All are tried by turns, `rounds`
/// times, and what counts of each is the median of its rate over the first load's in the same
/// round: a change of speed spoils one round.
[[nodiscard]] double least_of_the_fastest(std::span<const double> loads, int rounds,
                                          const std::function<double(double load)>& rate_of);

} // namespace reckon
