// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json.hpp"
#include "documents/describe.hpp"
#include "documents/document.hpp"

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

/// The reader and the writer for `describe`, and shared checks by hand. Not for other modules.
namespace reckon::documents {

/// In the order of the alternatives of a Document.
inline constexpr std::array<std::string_view, 5> k_kinds{"profile", "workload", "roles", "plan",
                                                         "report"};
/// A file that is read like a document, but that no other command takes.
inline constexpr std::string_view k_requirements = "requirements";

/// The kind of this document, or k_requirements. Throws Error{input} for another kind or a document
/// of a newer reckon.
[[nodiscard]] std::string kind_in_header(const JsonView& document);

/// Reads a document whose header must have `kind` into `record`, which has its defaults.
void read_document_into(const JsonView& document, std::string_view kind, const Ref& record);
template <class T>
[[nodiscard]] T read_as(std::string_view kind, const Json& json, const std::string& file) {
  T document;
  read_document_into(JsonView(json, file), kind, Visitor::ref(document));
  return document;
}

/// The value of a member or a record.
[[nodiscard]] Json json_of(const Ref& value, const Rule& rule);
/// As a document, with its header, unless `kind` is empty.
template <class T>
[[nodiscard]] Json written(const T& record, std::string_view kind = {}) {
  // Writing changes nothing.
  Json json = json_of(Visitor::ref(const_cast<T&>(record)), k_any);
  if (!kind.empty()) {
    json["schema"] = "reckon/" + std::string(kind);
    json["schema_version"] = k_schema_version;
  }
  return json;
}

/// The value at a path of keys and numbers below `view`: "groups/0/count".
[[nodiscard]] JsonView below(const JsonView& view, std::string_view path);
/// The elements of the list `key`; none when it is absent.
[[nodiscard]] std::vector<JsonView> elements_below(const JsonView& view, std::string_view key);
[[noreturn]] void fail_below(const JsonView& view, std::string_view path,
                             const std::string& problem);

enum class Range { rate, time };
/// Throws Error{input} for a rate outside 1e-30 to 1e30 bytes per second, and for a time above
/// 1e30 s: arithmetic with it could overflow.
void check_range(double value, Range range, const JsonView& view);

/// Finds names that occur twice in one document.
class Unique {
public:
  /// `what`: the kind of names for the message: "id", "tensor name".
  Unique(const JsonView& view, std::string what) : m_view(view), m_what(std::move(what)) {}
  /// Throws Error{input} when `name`, which stands at `path` below the view, was added before.
  void add(const std::string& name, const std::string& path);

private:
  const JsonView& m_view;
  std::string m_what;
  std::unordered_map<std::string, std::string> m_first; // name -> path
};

} // namespace reckon::documents
