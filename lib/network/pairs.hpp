// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "stats/curve.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The machine of each rank by the name that cells of pairs have for it: `machines` are ids of
/// MachineGroups as a plan's ranks name them, or of members. The k-th rank on a group with members
/// is on member k of it; a group without is named itself. Throws Error{input} when the profile
/// lacks a machine, or a group has fewer members than ranks.
[[nodiscard]] std::vector<std::string> pair_names(const Profile& profile,
                                                  const std::vector<std::string>& machines);

/// Time of one write from `from` to `to` (names of pair_names()) by size, from the post to its last
/// byte: from cells `pair_write`, else from `pair_latency` and `pair_bandwidth` (one_way before
/// two_way) as latency + bytes / rate at 4 KiB to 16 MiB. lo and hi are the fastest sample and the
/// slow tail. `transport` "" takes the first that the cells have. nullopt where the profile has
/// none of them; `source` gets the cells' names.
[[nodiscard]] std::optional<Curve> pair_curve(const Profile& profile, const std::string& from,
                                              const std::string& to, std::string_view transport,
                                              std::string* source = nullptr);

/// Seconds of an empty write from `from` to `to`: cell `pair_latency` (of either direction),
/// otherwise where the first two points of the pair's curve come from, not below 0; nullopt without
/// both.
[[nodiscard]] std::optional<double> pair_latency(const Profile& profile, const std::string& from,
                                                 const std::string& to, std::string_view transport);

/// Bytes per second from `from` to `to` with several writes in flight: cell `pair_bandwidth`
/// (one_way before two_way), of the longest writes; nullopt without it.
[[nodiscard]] std::optional<double> pair_bandwidth(const Profile& profile, const std::string& from,
                                                   const std::string& to,
                                                   std::string_view transport);

} // namespace reckon
