// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "network/network.hpp"

#include <optional>

namespace reckon {

/// What a gradient of `bytes` needs at least where switches sum, too (equation 59): the greater of
/// (26) and (27). `network`: with InsideOptions::switches. Absent where no switch sums, or where
/// sums there save less than 0.1 % of the prediction's bound, which is that of sums in ranks.
[[nodiscard]] std::optional<SwitchSums> switch_sums(const Network& network, double bytes,
                                                    const Prediction& prediction);

} // namespace reckon
