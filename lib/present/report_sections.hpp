// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/report.hpp"
#include "present/table.hpp"

#include <string>

namespace reckon {

// What render() of a report puts together, beside report_table().

/// "within the tolerance of 15 %", and how to take it.
[[nodiscard]] TableCell verdict_of(const Report& report);
/// What it was made from, and the environment.
[[nodiscard]] std::string made_text(const Report& report, const Style& style);
/// A row a rank, of many the slowest.
[[nodiscard]] std::string ranks_text(const Report& report, const Style& style);

} // namespace reckon
