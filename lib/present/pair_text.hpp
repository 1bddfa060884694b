// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "present/groups.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

/// Curves of pairs, of one case and one transport: a row for each (from, to), a column for each
/// size with the time of a write, and the rate beyond the two largest sizes.
[[nodiscard]] std::string pair_curves_table(const Cells& cells, const Style& style);

} // namespace reckon
