// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace reckon {

/// Quantities of a plan between ranks that share memory: its prediction with the other way of
/// summing, sent or in place (Plan::sums_in_place). Absent where the user chose one, or where it is
/// impossible.
inline constexpr std::string_view k_sums_sent_seconds = "sums_sent_seconds",
                                  k_sums_in_place_seconds = "sums_in_place_seconds";

} // namespace reckon
