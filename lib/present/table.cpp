// SPDX-License-Identifier: Apache-2.0
#include "present/table.hpp"

#include "core/split.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace reckon {
namespace {

constexpr std::size_t k_gap = 2;
constexpr std::size_t k_least_wrap = 24;

std::string padded(const std::string& text, const std::string& shown, std::size_t width,
                   Align align) {
  const std::string blanks(width - std::min(width, columns_of(text)), ' ');
  return align == Align::right ? blanks + shown : shown + blanks;
}

void trim_right(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

} // namespace

void Table::column(std::string_view head, Align align, bool wraps) {
  Column& added = m_columns.emplace_back(Column{{}, align, wraps});
  for (const std::string& line : split(head, "\n")) {
    added.head.push_back(printable(line));
  }
}

void Table::columns(std::string_view heads) {
  for (const std::string& text : split(heads, "|")) {
    std::string_view head = text;
    const bool right = head.starts_with('>'), wraps = head.starts_with('~');
    head.remove_prefix(right || wraps ? 1 : 0);
    column(head, right ? Align::right : Align::left, wraps);
  }
}

void Table::row(std::vector<TableCell> cells) {
  cells.resize(m_columns.size());
  for (TableCell& c : cells) {
    c.text = printable(c.text);
  }
  m_rows.push_back(std::move(cells));
}

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> out(m_columns.size());
  for (std::size_t i = 0; i < m_columns.size(); ++i) {
    for (const std::string& line : m_columns[i].head) {
      out[i] = std::max(out[i], columns_of(line));
    }
    for (const auto& row : m_rows) {
      out[i] = std::max(out[i], columns_of(row[i].text));
    }
  }
  return out;
}

std::string Table::marks(const Style& style) const {
  constexpr std::size_t k_long = 24; // text that may need more room than there is
  std::string head, rows;
  std::vector<bool> sentences; // of each column
  for (std::size_t i = 0; i < m_columns.size(); ++i) {
    const Column& column = m_columns[i];
    sentences.push_back((column.wraps || column.align == Align::left) &&
                        std::any_of(m_rows.begin(), m_rows.end(), [i](const auto& row) {
                          return columns_of(row[i].text) > k_long;
                        }));
    head += marked(fmt::format("{}", fmt::join(column.head, " ")),
                   sentences[i]                   ? Mark::sentence_head
                   : column.align == Align::right ? Mark::number_head
                                                  : Mark::head);
  }
  for (const auto& row : m_rows) {
    std::string cells;
    for (std::size_t i = 0; i < m_columns.size(); ++i) {
      const Column& column = m_columns[i];
      const bool sentence = sentences[i] || columns_of(row[i].text) > k_long;
      cells += marked(toned(row[i].text, row[i].tone, style), sentence ? Mark::sentence
                                                              : column.align == Align::right
                                                                  ? Mark::number
                                                                  : Mark::cell);
    }
    rows += marked(cells, Mark::row);
  }
  const bool headed = std::any_of(m_columns.begin(), m_columns.end(), [](const Column& column) {
    return std::any_of(column.head.begin(), column.head.end(),
                       [](const std::string& line) { return !line.empty(); });
  });
  return marked((headed ? marked(head, Mark::row) : "") + rows, Mark::table) + "\n";
}

std::string Table::text(const Style& style) const {
  if (style.colors == Colors::marks) {
    return marks(style);
  }
  std::vector<std::size_t> width = widths();
  std::vector<std::size_t> all(m_columns.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const auto total = [&](const std::vector<std::size_t>& shown) {
    std::size_t sum = m_indent;
    for (const std::size_t i : shown) {
      sum += width[i] + (i == shown.front() ? 0 : k_gap);
    }
    return sum;
  };
  const auto limit = static_cast<std::size_t>(std::max(style.width, 0));
  if (limit == 0 || total(all) <= limit) {
    return lines(all, std::move(width), style);
  }
  for (std::size_t i = 0; i < m_columns.size(); ++i) {
    if (m_columns[i].wraps) {
      const std::size_t others = total(all) - width[i];
      width[i] = std::min(width[i], std::max(k_least_wrap, limit - std::min(limit, others)));
      return lines(all, std::move(width), style);
    }
  }
  std::string out;
  for (std::size_t next = 1; next < m_columns.size();) {
    std::vector<std::size_t> shown{0};
    do {
      shown.push_back(next++);
      if (next == m_columns.size()) {
        break;
      }
      shown.push_back(next);
      const bool fits = total(shown) <= limit;
      shown.pop_back();
      if (!fits) {
        break;
      }
    } while (true);
    out += (out.empty() ? "" : "\n") + lines(shown, width, style);
  }
  return out.empty() ? lines(all, std::move(width), style) : out;
}

std::string Table::lines(const std::vector<std::size_t>& shown, std::vector<std::size_t> width,
                         const Style& style) const {
  std::string out;
  const auto put_line = [&](auto&& cell_text) { // cell_text(column) -> {plain, shown}
    std::string line(m_indent, ' ');
    for (const std::size_t i : shown) {
      if (i != shown.front()) {
        line.append(k_gap, ' ');
      }
      line += cell_text(i);
    }
    trim_right(line);
    out += line + '\n';
  };
  std::size_t head_lines = 0;
  for (const std::size_t i : shown) {
    const bool any = std::any_of(m_columns[i].head.begin(), m_columns[i].head.end(),
                                 [](const std::string& s) { return !s.empty(); });
    head_lines = any ? std::max(head_lines, m_columns[i].head.size()) : head_lines;
  }
  for (std::size_t n = 0; n < head_lines; ++n) {
    put_line([&](std::size_t i) {
      const auto& head = m_columns[i].head;
      // Short heads stand at the bottom, next to their column.
      const std::size_t skip = head_lines - std::min(head_lines, head.size());
      const std::string text = n >= skip ? head[n - skip] : "";
      return padded(text, toned(text, Tone::strong, style), width[i], m_columns[i].align);
    });
  }
  for (const auto& row : m_rows) {
    std::vector<std::vector<std::string>> cells(m_columns.size());
    std::size_t height = 1;
    for (const std::size_t i : shown) {
      cells[i] = wrapped(row[i].text, width[i]);
      height = std::max(height, cells[i].size());
    }
    for (std::size_t n = 0; n < height; ++n) {
      put_line([&](std::size_t i) {
        const std::string text = n < cells[i].size() ? cells[i][n] : "";
        if (row[i].background && style.colors != Colors::none) {
          return on_background(padded(text, text, width[i], m_columns[i].align), *row[i].background,
                               style);
        }
        return padded(text, toned(text, row[i].tone, style), width[i], m_columns[i].align);
      });
    }
  }
  return out;
}

} // namespace reckon
