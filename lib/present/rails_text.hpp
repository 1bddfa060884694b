// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "present/groups.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

/// The cells of rail_bandwidth: a row for each way between two machines, a column for each rail
/// alone, then all at once beside the sum. Rails whose ports have one name on all machines are
/// called by it. Empty without cells.
[[nodiscard]] std::string rails_table(const Cells& cells, const Style& style);

} // namespace reckon
