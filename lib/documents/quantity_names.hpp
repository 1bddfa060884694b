// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace reckon {

/// Quantities of a plan between ranks that share memory: what is predicted of it with its sums the
/// other way, sent or in place (Plan::sums_in_place). Absent where one of these was asked for, or
/// cannot be.
inline constexpr std::string_view k_sums_sent_seconds = "sums_sent_seconds",
                                  k_sums_in_place_seconds = "sums_in_place_seconds";

} // namespace reckon
