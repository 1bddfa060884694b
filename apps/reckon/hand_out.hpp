// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/report.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

/// Writes a report to the file `output`, where there is one, and prints it: its table, or with
/// `json` the document. "-" as the file is standard output, which then gets the document alone.
void hand_out(const Report& report, const std::string& output, bool json, ColorMode color);

} // namespace reckon
