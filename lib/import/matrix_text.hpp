// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/collector.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace reckon::import_detail {

/// A matrix as these tools print it: a line with a label and the numbers of the columns, below it
/// lines with the number of the row and its values.
struct MatrixText {
  struct Entry {
    int row, column;
    std::size_t line;
    std::optional<double> value; ///< absent for a dash
  };
  std::vector<Entry> entries; ///< row by row
  std::size_t columns = 0;    ///< how many
  std::size_t next = 0;       ///< the line after the last row
};

/// Of a rate inside a GPU.
inline constexpr const char* k_half_inside =
    "half of what the tool prints, which counts reads and writes";

/// Whether the line is a label and the numbers of columns: "   D\D     0      1".
[[nodiscard]] bool is_matrix_head(std::string_view line);

enum class RowRule {
  all,    ///< as many rows as columns
  spaced, ///< the same, and blank lines may stand between them
  some,   ///< rows without values may be missing
};

/// The matrix whose heading (a label and the numbers of the columns) is line `head`. `what`: its
/// name for messages. Where the file ends in the matrix, it has the whole rows, which `out` is
/// told. Throws Error{input} when that line is no heading, a row is missing, out of order, too
/// short or too long, and when a value is not a number or negative.
[[nodiscard]] MatrixText read_matrix(const TextLines& lines, std::size_t head,
                                     const std::string& what, RowRule rule, Collector& out);

} // namespace reckon::import_detail
