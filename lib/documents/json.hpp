// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "documents/document.hpp"

#include <string>

/// Documents as JSON values, for the few modules that need them; others read and write files by
/// documents/document.hpp.
namespace reckon {

/// Each validates strictly; `file` is for messages. Throws Error{input} with file and JSON pointer.
[[nodiscard]] Document document_from_json(const Json& json, const std::string& file);
[[nodiscard]] Profile profile_from_json(const Json& json, const std::string& file);
[[nodiscard]] Workload workload_from_json(const Json& json, const std::string& file);
[[nodiscard]] Roles roles_from_json(const Json& json, const std::string& file);
[[nodiscard]] Plan plan_from_json(const Json& json, const std::string& file);
[[nodiscard]] Report report_from_json(const Json& json, const std::string& file);

[[nodiscard]] Json to_json(const Document& document);
[[nodiscard]] Json to_json(const Profile& profile);
[[nodiscard]] Json to_json(const Workload& workload);
[[nodiscard]] Json to_json(const Roles& roles);
[[nodiscard]] Json to_json(const Plan& plan);
[[nodiscard]] Json to_json(const Report& report);
/// As it stands in a profile.
[[nodiscard]] Json to_json(const Endpoint& endpoint);

} // namespace reckon
