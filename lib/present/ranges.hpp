// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Ascending numbers: {0, 1, 2, 5} is "0-2, 5"; after a word "gpu0-2, gpu5".
[[nodiscard]] std::string number_ranges(const std::vector<std::size_t>& numbers,
                                        std::string_view word = {});
/// Every "sha256:" digest in a text shortened to its first 12 digits: these distinguish documents
/// for a reader.
[[nodiscard]] std::string short_digest(std::string text);

/// A text whose numbers may take several values: texts of one skeleton are merged into one with
/// ranges, "used 1.4 to 2.1 of 2 processors".
class NumberRanges {
public:
  NumberRanges() = default;
  explicit NumberRanges(std::string_view text);
  /// The text with '#' for each number.
  [[nodiscard]] std::string skeleton() const;
  /// Merges a text of equal skeleton, or into an empty one.
  void merge(const NumberRanges& other);
  [[nodiscard]] std::string text() const;

private:
  struct Number {
    double low_value, high_value;
    std::string low, high; ///< as written
  };
  std::vector<std::string> m_between; ///< text before each number, and after the last
  std::vector<Number> m_numbers;
};

} // namespace reckon
