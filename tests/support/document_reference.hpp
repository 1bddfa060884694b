// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"

#include <array>
#include <string>
#include <string_view>

namespace reckon::test {

// What docs/ says of the documents' fields, from their descriptions (documents/describe.hpp).

inline constexpr std::array<std::string_view, 6> k_kinds{"profile", "workload", "roles",
                                                         "plan",    "report",   "requirements"};

/// The JSON schema (draft 2020-12) of a kind of document.
[[nodiscard]] Json schema_of(std::string_view kind);
/// A Markdown table of its fields.
[[nodiscard]] std::string reference_of(std::string_view kind);

} // namespace reckon::test
