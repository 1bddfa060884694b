// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/collector.hpp"
#include "import/text_lines.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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
  std::vector<Entry> entries{}; ///< row by row
  std::size_t columns = 0;      ///< how many
};
enum class RowRule {
  all,    ///< as many rows as columns
  spaced, ///< the same, and blank lines may stand between them
  some,   ///< rows without values may be missing
};

/// Whether the line is a label and the numbers of columns: "   D\D     0      1".
[[nodiscard]] bool is_matrix_head(std::string_view line);

/// Of a rate inside a GPU.
inline constexpr const char* k_half_inside =
    "half of what the tool prints, which counts reads and writes";

/// The common part of the readers of what a tool printed: each line in its turn, then the profile.
class LogReader {
public:
  /// `takes`: the parts that reckon reads, for a file that has none of them.
  LogReader(const TextLines& lines, const ImportOptions& options, std::string tool,
            std::string takes = "")
      : m_lines(lines), m_options(options), m_out(lines.file(), options), m_tool(std::move(tool)),
        m_takes(std::move(takes)) {}
  virtual ~LogReader() = default;
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  /// Throws Error{input} for what the tool would not print.
  [[nodiscard]] Profile read();

protected:
  /// Of each line that is not blank. A reader of several sets m_next.
  virtual void line(const Line& line) = 0;
  /// Behind the last line.
  virtual void end() {}
  /// The profile of what was added.
  [[nodiscard]] Profile finish();

  /// Whether a row has as many values as its table has columns and is `complete`. The output may
  /// end in one that is not. Throws Error{input} when the row before was not whole.
  [[nodiscard]] bool is_whole(const Line& row, std::size_t columns, bool complete);
  /// The table goes on, or ends as the tool ends it. Throws Error{input} when a row was not whole.
  void goes_on() const;
  /// Nothing follows. False: the last row was whole.
  bool ends_in_row();
  /// The matrix whose heading is the next line; then the one behind it is next. `what`: its name
  /// for messages. Where the file ends in the matrix, it has the whole rows. Throws Error{input}
  /// when that line is no heading, a row is missing, out of order, too short or too long, and when
  /// a value is not a number or negative.
  [[nodiscard]] MatrixText read_matrix(const std::string& what, RowRule rule);
  void cut_off(std::size_t at, const std::string& problem) {
    m_out.cut_off(m_lines.place(at) + problem);
  }

  const TextLines& m_lines;
  const ImportOptions& m_options;
  Collector m_out;
  Devices m_devices;
  std::string m_version; ///< of the tool; empty: not said
  std::size_t m_next = 0;

private:
  std::string m_tool, m_takes;
  std::optional<std::pair<std::size_t, std::string>> m_cut; ///< a row, and what is wrong with it
};

} // namespace reckon::import_detail
