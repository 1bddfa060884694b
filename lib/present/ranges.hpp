// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Ascending numbers: {0, 1, 2, 5} is "0-2, 5".
[[nodiscard]] std::string number_ranges(const std::vector<std::size_t>& numbers);
/// Every "sha256:" digest in a text with its first 12 digits: they tell documents apart for a
/// reader.
[[nodiscard]] std::string short_digest(std::string text);

} // namespace reckon
