// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The lines of a CSV file, one after another. Fields are separated by commas; blanks around them,
/// a byte order mark, carriage returns and empty lines do not count. A field in double quotes may
/// hold commas, and "" for a quote, but no line break. The text must outlive the reader.
class CsvReader {
public:
  CsvReader(std::string_view text, std::string file);

  /// The fields of the next line; absent at the end. The first line is the header: every other must
  /// have as many fields. Throws as fail().
  [[nodiscard]] std::optional<std::vector<std::string>> next();
  /// Reads the header line and returns the column of each of `names`; absent for a missing one.
  /// Throws as fail() for a title outside `names`, with `expected` ("the columns bytes and
  /// seconds"), and for one that occurs twice. Absent for a text without lines.
  [[nodiscard]] std::optional<std::vector<std::optional<std::size_t>>>
  columns(const std::vector<std::string_view>& names, std::string_view expected);
  /// Line number of the fields that next() returned last, from 1.
  [[nodiscard]] std::size_t line() const { return m_line; }
  [[nodiscard]] const std::string& file() const { return m_file; }
  /// Throws Error{input}: "FILE:LINE: problem".
  [[noreturn]] void fail(const std::string& problem) const;

private:
  std::string_view m_rest;
  std::string m_file;
  std::size_t m_line = 0;
  std::optional<std::size_t> m_fields; ///< number of fields in the header
};

/// The whole field as a number, with an exponent if any; absent when it is not a number, or not
/// finite.
[[nodiscard]] std::optional<double> finite_number(std::string_view field);
/// The number that `text` begins with; absent without one, or where it is not finite.
[[nodiscard]] std::optional<double> leading_number(std::string_view text);

} // namespace reckon
