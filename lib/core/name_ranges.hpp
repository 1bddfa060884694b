// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace reckon {

/// Names with consecutive numbers as one: {"gpu3", "gpu1", "gpu2", "cpu"} is {"cpu", "gpu1-3"}.
/// Names without a number come first, each word's by their numbers.
[[nodiscard]] std::vector<std::string> name_ranges(const std::vector<std::string>& names);

/// "core2" before "core10".
[[nodiscard]] bool natural_less(const std::string& a, const std::string& b);

/// The first of some names as a text: "a, b, c and 4 more".
[[nodiscard]] std::string first_names(const std::vector<std::string>& names, std::size_t most = 3);

} // namespace reckon
