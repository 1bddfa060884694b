// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "present/groups.hpp"
#include "present/style.hpp"
#include "present/topology_text.hpp"

#include <cstddef>
#include <string>

namespace reckon {

/// Its name and where it is from, then the environment.
[[nodiscard]] std::string context_text(const Profile& profile, const Style& style);
/// A row for each group of machines.
[[nodiscard]] std::string machines_text(const Profile& profile, const Style& style);
/// topology_text() with what the profile measured of its links.
[[nodiscard]] std::string topology_text(const Profile& profile, const Style& style,
                                        const LinkRemark& remark = {});
/// What the system says of the places of traffic: the settings that cost most, each value with its
/// places, and the errors counted while it was measured. Empty when nothing is known.
[[nodiscard]] std::string settings_text(const Profile& profile, const Style& style);
/// The fits of one case, or with an empty `test` of all; empty when there is none.
[[nodiscard]] std::string fits_text(const Profile& profile, const std::string& test,
                                    const Style& style);

/// The cells of one case in the forms that fit: matrices, curves, tables over threads or pairs. In
/// full also every size and every sample's statistics.
[[nodiscard]] std::string case_text(const Cells& cells, bool in_full, const Style& style);

/// Why cells have no value, and with `noisy` why others are doubtful: failures first, then the most
/// frequent reasons, at most `most` lines. Reasons that differ in their numbers only are one line
/// with the numbers' ranges. A noisy cell often has several reasons. Empty without reasons.
[[nodiscard]] std::string reasons_text(const Cells& cells, std::size_t most, bool noisy,
                                       const Style& style);

/// A line over a table; both texts go through printable().
[[nodiscard]] std::string heading(const std::string& title, const std::string& rest,
                                  const Style& style);

} // namespace reckon
