// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
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

} // namespace reckon
