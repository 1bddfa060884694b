// SPDX-License-Identifier: Apache-2.0
#include "import/log_reader.hpp"

#include <fmt/format.h>

namespace reckon::import_detail {

Profile LogReader::read() {
  while (m_next < m_lines.size()) {
    const Line next(m_lines, m_next++);
    if (!next.words.empty()) {
      line(next);
    }
  }
  end();
  return finish();
}

Profile LogReader::finish() {
  return m_out.finish(m_tool + (m_version.empty() ? "" : " " + m_version), m_lines.raw(), m_takes);
}

bool LogReader::is_whole(const Line& row, std::size_t columns, bool complete) {
  goes_on();
  if (row.words.size() == columns && complete) {
    return true;
  }
  m_cut = {row.at,
           (row.words.size() == columns ? "has a value with fewer digits than the tool prints"
                                        : fmt::format("has {} values, but the table has {} columns",
                                                      row.words.size(), columns)) +
               "; was the line cut off, or did something else write into it? Give the tool's whole "
               "output"};
  return false;
}

void LogReader::goes_on() const {
  if (m_cut) {
    m_lines.fail(m_cut->first, m_cut->second);
  }
}

bool LogReader::ends_in_row() {
  if (m_cut) {
    cut_off(m_cut->first, "the output ends in this row, which is left out");
  }
  return std::exchange(m_cut, std::nullopt).has_value();
}

} // namespace reckon::import_detail
