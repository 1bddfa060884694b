// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "strategies/ways.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// What begins a plan's assumptions about links, memories and sums of unknown rate.
inline constexpr std::string_view k_no_rate = "no rate is known of ";

/// What ranks at these places could use and has no known rate, a sentence each with what a profile
/// says it by. Ways inside a processor are never described or measured by themselves, and are left
/// out.
[[nodiscard]] std::vector<std::string> unknown_rates(const Profile& profile, const Places& places);

} // namespace reckon
