// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

/// The verdict on one line with what it comes to, then what the documents were made from that is
/// not the same, and what differs in groups, causes before what follows from them; what could not
/// be decided; what only one probe measured. `verbose`: all of it; else groups of which nothing is
/// better or worse by itself are counted only. The warnings are left to the caller: they belong to
/// standard error.
[[nodiscard]] std::string render(const Comparison& comparison, const std::string& before_name,
                                 const std::string& after_name, const Style& style,
                                 bool verbose = false);

/// "routing/1/latency_proxy: rank 5 -> rank 6".
[[nodiscard]] std::string difference_line(const Difference& difference);

} // namespace reckon
