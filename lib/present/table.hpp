// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "present/style.hpp"

#include <optional>
#include <string>
#include <vector>

namespace reckon {

enum class Align { left, right };

struct TableCell {
  TableCell() = default;
  // Implicit on purpose: most cells are only text.
  TableCell(std::string cell_text, Tone cell_tone = Tone::plain)
      : text(std::move(cell_text)), tone(cell_tone) {}
  TableCell(const char* cell_text) : text(cell_text) {}
  std::string text;
  Tone tone = Tone::plain;
  std::optional<Rgb> background;
};

/// Aligned columns with heads. Every text goes through printable().
class Table {
public:
  /// `indent` blanks before each line, two blanks between columns.
  explicit Table(std::size_t indent) : m_indent(indent) {}
  Table(std::size_t indent, std::string_view heads) : m_indent(indent) { columns(heads); }
  /// `head` may have several lines. One column may wrap: on a terminal it gets the others' rest,
  /// but at least 24.
  void column(std::string_view head, Align align = Align::left, bool wraps = false);
  /// Several, as "name|>count|~remarks": '>' stands before the head of a column whose cells are
  /// aligned right, '~' before that of the one that wraps.
  void columns(std::string_view heads);
  /// Missing cells at the end are empty.
  void row(std::vector<TableCell> cells);
  [[nodiscard]] bool empty() const { return m_rows.empty(); }
  /// Lines without trailing blanks. A table that is too wide for the terminal and has no wrapping
  /// column is cut into several, each with the first column.
  [[nodiscard]] std::string text(const Style& style) const;

private:
  struct Column {
    std::vector<std::string> head;
    Align align;
    bool wraps;
  };
  [[nodiscard]] std::string marks(const Style& style) const;
  [[nodiscard]] std::vector<std::size_t> widths() const;
  [[nodiscard]] std::string lines(const std::vector<std::size_t>& shown,
                                  std::vector<std::size_t> width, const Style& style) const;
  std::size_t m_indent;
  std::vector<Column> m_columns;
  std::vector<std::vector<TableCell>> m_rows;
};

} // namespace reckon
