// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"

#include <array>
#include <string>
#include <string_view>

namespace reckon::documents {

// Schemas and reference of the documents' fields, from their descriptions (documents/describe.hpp).

inline constexpr std::array<std::string_view, 6> k_schema_kinds{
    "profile", "workload", "roles", "plan", "report", "requirements"};

/// The JSON schema (draft 2020-12) of a kind of document.
[[nodiscard]] Json schema_of(std::string_view kind);
/// Markdown tables of the fields of all kinds.
[[nodiscard]] std::string field_reference();

} // namespace reckon::documents
