// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "documents/report.hpp"
#include "documents/roles.hpp"
#include "documents/workload.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace reckon {

inline constexpr int k_schema_version = 1;

/// Any document, as read from a file.
using Document = std::variant<Profile, Workload, Roles, Plan, Report>;

/// "profile", "workload", "roles", "plan" or "report".
[[nodiscard]] std::string kind_of(const Document& document);

/// The kind in a text's "schema", whatever else is in it; empty: it is no document.
[[nodiscard]] std::string document_kind(const std::string& text);

/// The nature of a text without a schema, or of a folder, which has no text, and the remedy ("this
/// is output of ..."); empty: unknown.
using WhatTextIs = std::function<std::string(std::string_view text, const std::string& path)>;
/// Lets all readers below report that. Once, before any of them runs: this module does not know
/// other programs.
void explain_other_texts(WhatTextIs what_is);

/// Reads `path` ("-" for standard input), looks at "schema" and "schema_version", validates
/// strictly. Throws Error{input} with the file and the JSON pointer.
[[nodiscard]] Document read_document(const std::string& path);

/// The same of a file, which may be any that read_workload() takes, or of the name of a shipped
/// workload or profile.
[[nodiscard]] Document read_file_or_shipped(const std::string& path_or_name);

/// As read_document, but any other kind is Error{input} that names the file's kind. read_profile
/// also takes the name of a shipped profile, found as in read_workload.
[[nodiscard]] Profile read_profile(const std::string& path_or_name);
/// The same; `doubts` gets the sentences of cell_doubts().
[[nodiscard]] Profile read_profile(const std::string& path_or_name,
                                   std::vector<std::string>& doubts);
[[nodiscard]] Roles read_roles(const std::string& path);
[[nodiscard]] Plan read_plan(const std::string& path);
/// A path to a JSON, CSV (by its ending or its header line) or safetensors file (by its ending),
/// "-", or the name of a shipped workload ("resnet50"), which is looked for in $RECKON_DATA_DIR,
/// beside the binary's installation and in the source tree.
[[nodiscard]] Workload read_workload(const std::string& path_or_name);
/// The same; `doubts` gets the lines of workload_from_safetensors().
[[nodiscard]] Workload read_workload(const std::string& path_or_name,
                                     std::vector<std::string>& doubts);
/// Names that read_workload and read_profile know, sorted.
[[nodiscard]] std::vector<std::string> shipped_workloads();
[[nodiscard]] std::vector<std::string> shipped_profiles();

/// The path of another shipped file, "usual/collectives.json", looked for where profiles are.
/// Throws Error{input} where none of these folders has it.
[[nodiscard]] std::string shipped_file(const std::string& below);

/// The canonical text of a document (a Document or one of its kinds), and a link to it: its name
/// and the digest of that text.
template <class T>
[[nodiscard]] std::string canonical_text(const T& document);
[[nodiscard]] DocumentLink link_to(const std::string& name, const std::string& canonical_text);

} // namespace reckon
