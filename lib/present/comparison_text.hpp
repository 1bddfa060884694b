// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

/// The verdict and its consequence on one line, then the differing sources of the documents, and
/// the differences in groups, causes before their effects; undecided quantities; quantities that
/// only one probe measured. `verbose`: everything; otherwise groups without anything better or
/// worse are only counted. The caller prints the warnings: they belong to standard error.
[[nodiscard]] std::string render(const Comparison& comparison, const std::string& before_name,
                                 const std::string& after_name, const Style& style,
                                 bool verbose = false);

/// "routing/1/latency_proxy: rank 5 -> rank 6".
[[nodiscard]] std::string difference_line(const Difference& difference);

} // namespace reckon
