// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"

#include <nlohmann/json.hpp>

#include <string_view>

namespace reckon {

/// Whether a text can be an id or a name: 1 to 256 characters without control characters.
[[nodiscard]] bool is_name(std::string_view text);

} // namespace reckon
