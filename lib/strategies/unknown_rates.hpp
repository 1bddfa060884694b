// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "strategies/ways.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The first words of a plan's assumptions about links, memories and sums of unknown rate.
inline constexpr std::string_view k_no_rate = "no rate is known of ";

/// The resources of ranks at these places without a known rate, a sentence each with the profile's
/// way to say it. Ways inside a processor are never described or measured by themselves, and are
/// left out.
[[nodiscard]] std::vector<std::string> unknown_rates(const Profile& profile, const Places& places);

} // namespace reckon
