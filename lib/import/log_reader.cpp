// SPDX-License-Identifier: Apache-2.0
#include "import/log_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon::import_detail {
namespace {

/// The numbers that end the line, where at least one word before them is not a number.
std::vector<int> columns_of(const std::vector<std::string_view>& words) {
  std::vector<int> columns;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    const auto index = index_of(*word);
    if (!index) {
      std::reverse(columns.begin(), columns.end());
      return columns;
    }
    columns.push_back(*index);
  }
  return {};
}

/// Whether the last word lacks digits behind its point, of which the tools print as many for each
/// value of a row.
bool is_cut(const std::vector<std::string_view>& words) {
  std::size_t most = 1;
  for (const std::string_view word : words) {
    const std::size_t point = word.find('.');
    most = std::max(most, point == word.npos ? 0 : word.size() - point - 1);
  }
  return words.back() != "-" && words.back() != "N/A" && !has_decimals(words.back(), most);
}

bool ascends(const std::vector<int>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), [](int a, int b) { return a >= b; }) ==
         numbers.end();
}

} // namespace

bool is_matrix_head(std::string_view line) {
  const std::vector<int> columns = columns_of(words_of(line));
  return !columns.empty() && ascends(columns);
}

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

MatrixText LogReader::read_matrix(const std::string& what, RowRule rule) {
  const Line heading(m_lines, m_next++);
  const std::vector<int> columns = columns_of(heading.words);
  if (!is_matrix_head(heading.text)) {
    heading.fail_as_cut(fmt::format("the numbers of the columns of {} must stand here", what));
  }
  MatrixText matrix{.columns = columns.size()};
  std::vector<int> rows;
  for (; m_next < m_lines.size(); ++m_next) {
    const Line line(m_lines, m_next);
    if (line.words.empty() && rule == RowRule::spaced && rows.size() < columns.size()) {
      continue;
    }
    const auto row = index_of(line[0]);
    if (!row) {
      break;
    }
    const bool known = std::ranges::find(columns, *row) != columns.end();
    if (!known || (!rows.empty() && rows.back() >= *row)) {
      line.fail(fmt::format("row {} of {} is {}; give the tool's output as it is", *row, what,
                            known ? "out of order" : "not among its columns"));
    }
    const std::size_t values = line.words.size() - 1;
    if (values > columns.size()) {
      const auto extra = line[columns.size() + 1].data() - line.text.data();
      line.fail(fmt::format("\"{}\" stands behind the last value of row {} of {}, one for each of "
                            "its columns ({}); take out what the tool did not print",
                            quoted(line.text.substr(static_cast<std::size_t>(extra))), *row, what,
                            columns.size()));
    }
    if (line.at + 1 == m_lines.size() && (values != columns.size() || is_cut(line.words))) {
      ++m_next;
      break;
    }
    if (values != columns.size()) {
      line.fail_as_cut(fmt::format("row {} of {} has {} values, but there are {} columns", *row,
                                   what, values, columns.size()));
    }
    for (std::size_t i = 0; i < values; ++i) {
      const std::string_view word = line[i + 1];
      std::optional<double> value;
      if (word != "-" && word != "N/A") {
        value = line.number(word, fmt::format("column {} of {}", columns[i], what));
      }
      matrix.entries.push_back({*row, columns[i], line.at, value});
    }
    rows.push_back(*row);
  }
  const auto missing = std::ranges::find_if(
      columns, [&](int column) { return std::ranges::find(rows, column) == rows.end(); });
  if (missing != columns.end() && m_next >= m_lines.size()) {
    cut_off(m_next, fmt::format("the file ends before row {} of {}", *missing, what));
  } else if (missing != columns.end() && (rule != RowRule::some || rows.empty())) {
    m_lines.fail(m_next, fmt::format("row {} of {} is missing; give the tool's whole output",
                                     *missing, what));
  }
  return matrix;
}

} // namespace reckon::import_detail
