// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/collector.hpp"
#include "import/text_lines.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace reckon::import_detail {

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
