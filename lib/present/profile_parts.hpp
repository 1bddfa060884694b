// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "present/groups.hpp"
#include "present/style.hpp"

#include <cstddef>
#include <string>

namespace reckon {

/// The cells of one case in the fitting forms: matrices, curves, tables over threads or pairs. In
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
