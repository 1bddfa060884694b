// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// What stands between the separators, in order, some of it perhaps empty: "a,,b" is a, "", b, and
/// "" is one empty part. `separator` is not empty.
[[nodiscard]] std::vector<std::string> split(std::string_view text, std::string_view separator);

} // namespace reckon
