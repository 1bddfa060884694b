// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

/// The verdict on one line, then what differs in groups, what could not be decided, and what the
/// documents were made from that is not the same. Long groups are cut with a count of the rest;
/// to_json() has everything. The warnings are left to the caller: they belong to standard error.
[[nodiscard]] std::string render(const Comparison& comparison, const std::string& before_name,
                                 const std::string& after_name, const Style& style);

/// "routing/1/latency_proxy: rank 5 -> rank 6".
[[nodiscard]] std::string difference_line(const Difference& difference);

} // namespace reckon
