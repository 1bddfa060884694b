// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json.hpp"
#include "documents/plan.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

/// What the readers and writers of the five documents share. Not for other modules.
namespace reckon::documents {

/// A fresh object with "schema" and "schema_version" of `kind` ("profile", ...).
[[nodiscard]] Json with_header(std::string_view kind);
/// What kind of document this is. Throws Error{input} when it is none, or one of a newer reckon.
[[nodiscard]] std::string kind_in_header(const JsonView& document);
/// kind_in_header, and Error{input} that names both kinds when it is not `kind`.
void check_header(const JsonView& document, std::string_view kind);

/// Text that may be absent; absent and empty are the same, so that each document has one spelling.
[[nodiscard]] std::string optional_text(const JsonView& object, std::string_view key);
/// Text that is not empty.
[[nodiscard]] std::string some_text(const JsonView& value);
void put_text(Json& object, const char* key, const std::string& text);

using Texts = std::map<std::string, std::string>;
[[nodiscard]] Texts texts_from_json(const JsonView& object);
[[nodiscard]] Json json_of(const Texts& texts);

/// A whole number of at least 1.
[[nodiscard]] std::uint64_t positive_count(const JsonView& value);
/// An array with at least one element; `what` names one element.
[[nodiscard]] std::vector<JsonView> some_elements(const JsonView& array, std::string_view what);
/// lower_case_with_digits: the name of a case, a strategy, a term.
[[nodiscard]] std::string snake_name(const JsonView& value);

/// "sha256:" and 64 hexadecimal digits.
[[nodiscard]] std::string digest_from_json(const JsonView& value);
[[nodiscard]] DocumentLink link_from_json(const JsonView& object);
[[nodiscard]] Json json_of(const DocumentLink& link);
[[nodiscard]] Prediction prediction_from_json(const JsonView& object);
[[nodiscard]] Json json_of(const Prediction& prediction);

/// Finds names that occur twice.
class Unique {
public:
  /// `what`: what the names are, for the message: "id", "tensor name".
  explicit Unique(std::string what) : m_what(std::move(what)) {}
  /// Throws Error{input} at `where` when `name` was added before.
  void add(const std::string& name, const JsonView& where);

private:
  std::string m_what;
  std::unordered_map<std::string, std::string> m_first; // name -> pointer
};

} // namespace reckon::documents
