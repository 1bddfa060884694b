// SPDX-License-Identifier: Apache-2.0
#include "import/matrix_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon::import_detail {
namespace {

/// Numbers at the end of the words, after at least one word that is none.
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

/// Something may stand behind a row's last value.
void refuse_more(const TextLines& lines, std::size_t at, const std::vector<std::string_view>& words,
                 std::size_t columns, const std::string& what) {
  if (words.size() <= columns + 1) {
    return;
  }
  const auto extra = static_cast<std::size_t>(words[columns + 1].data() - lines[at].data());
  lines.fail(at, fmt::format("\"{}\" stands behind the last value of row {} of {}, one for each of "
                             "its columns ({}); take out what the tool did not print",
                             quoted(lines[at].substr(extra)), words[0], what, columns));
}

} // namespace

bool is_matrix_head(std::string_view line) {
  const std::vector<int> columns = columns_of(words_of(line));
  return !columns.empty() && ascends(columns);
}

MatrixText read_matrix(const TextLines& lines, std::size_t head, const std::string& what,
                       RowRule rule, Collector& out) {
  MatrixText matrix;
  std::vector<int> columns, rows;
  if (head < lines.size()) {
    columns = columns_of(words_of(lines[head]));
  }
  if (columns.empty() || !ascends(columns)) {
    lines.fail(head, fmt::format("the numbers of the columns of {} must stand here; was the file "
                                 "cut off? Give the tool's whole output",
                                 what));
  }
  matrix.columns = columns.size();
  std::size_t at = head + 1;
  for (; at < lines.size(); ++at) {
    const std::vector<std::string_view> words = words_of(lines[at]);
    if (words.empty() && rule == RowRule::spaced && rows.size() < columns.size()) {
      continue;
    }
    const auto row = words.empty() ? std::nullopt : index_of(words.front());
    if (!row) {
      break;
    }
    const bool known = std::find(columns.begin(), columns.end(), *row) != columns.end();
    if (!known || (!rows.empty() && rows.back() >= *row)) {
      lines.fail(at, fmt::format("row {} of {} is {}; give the tool's output as it is", *row, what,
                                 known ? "out of order" : "not among its columns"));
    }
    const std::size_t values = words.size() - 1;
    refuse_more(lines, at, words, columns.size(), what);
    if (at + 1 == lines.size() && (values != columns.size() || is_cut(words))) {
      ++at; // cut off
      break;
    }
    if (values != columns.size()) {
      lines.fail(at, fmt::format("row {} of {} has {} values, but there are {} columns; was the "
                                 "file cut off? Give the tool's whole output",
                                 *row, what, values, columns.size()));
    }
    for (std::size_t i = 0; i < values; ++i) {
      const std::string_view word = words[i + 1];
      const bool none = word == "-" || word == "N/A";
      const std::string name = fmt::format("column {} of {}", columns[i], what);
      matrix.entries.push_back({*row, columns[i], at,
                                none ? std::nullopt : std::optional(lines.number(at, word, name))});
    }
    rows.push_back(*row);
  }
  matrix.next = at;
  if (rows.size() == columns.size()) {
    return matrix;
  }
  const auto missing = std::find_if(columns.begin(), columns.end(), [&](int column) {
    return std::find(rows.begin(), rows.end(), column) == rows.end();
  });
  if (at >= lines.size()) {
    out.cut_off(lines, at, fmt::format("the file ends before row {} of {}", *missing, what));
  } else if (rule != RowRule::some || rows.empty()) {
    lines.fail(
        at, fmt::format("row {} of {} is missing; give the tool's whole output", *missing, what));
  }
  return matrix;
}

} // namespace reckon::import_detail
