// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The parts between the separators, in order, some possibly empty: "a,,b" is a, "", b, and "" is
/// one empty part. `separator` is not empty.
[[nodiscard]] std::vector<std::string> split(std::string_view text, std::string_view separator);

} // namespace reckon
