// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

/// An ordered map: keys are sorted. Only declared here. Code that builds or inspects a value
/// includes core/json.hpp, which is slow to compile; code that passes one on or reads through a
/// JsonView does not need it.
using Json = nlohmann::json;

/// The largest whole number in a document: above it JSON readers elsewhere lose digits.
inline constexpr std::uint64_t k_max_count = 1ULL << 53U;

/// A JSON value together with its place, so that errors can name it: every accessor throws
/// Error{input} with "FILE: /json/pointer: problem; remedy". Views do not own: the document must
/// outlive them.
class JsonView {
public:
  JsonView(const Json& value, std::string file);

  /// A required member.
  [[nodiscard]] JsonView at(std::string_view key) const;
  /// An optional member (a null counts as absent).
  [[nodiscard]] std::optional<JsonView> find(std::string_view key) const;
  /// Throws at the first member outside `keys` (with the nearest of them), or when this is no
  /// object.
  void only(std::initializer_list<std::string_view> keys) const;
  /// The elements of an array.
  [[nodiscard]] std::vector<JsonView> elements() const;
  /// The members of an object, by name.
  [[nodiscard]] std::vector<std::pair<std::string, JsonView>> members() const;

  [[nodiscard]] std::string string() const;
  /// A non-empty string of at most 256 characters without control characters: an id or a name.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] std::string one_of(std::initializer_list<std::string_view> allowed) const;
  [[nodiscard]] bool boolean() const;
  /// Any finite number.
  [[nodiscard]] double number() const;
  [[nodiscard]] double non_negative() const;
  [[nodiscard]] double positive() const;
  /// A whole number in [0, 2^53].
  [[nodiscard]] std::uint64_t count() const;
  /// A whole number in [low, high].
  [[nodiscard]] int integer(int low, int high) const;
  /// An array of finite numbers / of whole numbers, read without a view for each element.
  [[nodiscard]] std::vector<double> numbers() const;
  [[nodiscard]] std::vector<std::uint64_t> counts() const;

  /// The value itself, to keep it unchanged.
  [[nodiscard]] const Json& raw() const { return *m_value; }
  [[nodiscard]] const std::string& file() const { return *m_file; }
  [[nodiscard]] std::string pointer() const { return m_pointer.empty() ? "/" : m_pointer; }
  [[noreturn]] void fail(const std::string& problem) const;

private:
  JsonView(const Json* value, std::shared_ptr<const std::string> file, std::string pointer)
      : m_value(value), m_file(std::move(file)), m_pointer(std::move(pointer)) {}
  /// The value, which must be one; `what` follows "must be an array".
  [[nodiscard]] const Json& object() const;
  [[nodiscard]] const Json& array(const char* what) const;
  /// A part of it.
  [[nodiscard]] JsonView below(const Json& value, std::string_view key) const;
  const Json* m_value;
  std::shared_ptr<const std::string> m_file; // shared: thousands of views name the same file
  std::string m_pointer;
};

/// Strict JSON: no comments, no duplicate keys, no NaN, at most 64 levels deep. Throws Error{input}
/// with the file and the line and column, or the JSON pointer.
[[nodiscard]] Json parse_json(std::string_view text, const std::string& file);

/// The canonical text: sorted keys, 2 spaces, arrays of scalars and of such arrays on one line,
/// shortest numbers that read back the same, final newline. Bytes of a string that are not UTF-8
/// become U+FFFD. Throws Error{internal} on NaN or infinity: a document never holds them.
[[nodiscard]] std::string canonical(const Json& value);

/// On one line, for messages and other processes of ours. What is not UTF-8, as names of a machine
/// need not be, becomes U+FFFD.
[[nodiscard]] std::string compact(const Json& value);

/// `value` if it is finite, null otherwise.
[[nodiscard]] Json finite_or_null(double value);

/// The candidate nearest to `word` by edit distance if near enough for a typing error, else the
/// first that begins with `word`; empty without either.
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& candidates);

} // namespace reckon
