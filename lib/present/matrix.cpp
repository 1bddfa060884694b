// SPDX-License-Identifier: Apache-2.0
#include "present/matrix.hpp"

#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace reckon {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

struct Extremes {
  double sum = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  std::string min_pair, max_pair;
};

/// Ids are named without their first `common` characters.
Extremes extremes_of(const Matrix& m, std::size_t common) {
  Extremes e;
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    for (std::size_t j = 0; j < m.columns.size(); ++j) {
      const auto& value = m.cells[i][j].value;
      if (!value) {
        continue;
      }
      const std::string pair =
          fmt::format("{} -> {}", m.rows[i].substr(common), m.columns[j].substr(common));
      e.sum += *value;
      if (*value < e.min) {
        e.min = *value;
        e.min_pair = pair;
      }
      if (*value > e.max) {
        e.max = *value;
        e.max_pair = pair;
      }
    }
  }
  return e;
}

std::string cell_text(const Matrix& m, const MatrixCell& cell) {
  return cell.value ? fmt::format("{}{:.{}f}", cell.noisy ? "~" : "", *cell.value, m.decimals)
                    : cell.text;
}

std::string colors_alone(const Matrix& m, const ColorScale& scale,
                         const std::vector<std::string>& row_heads, const Style& style) {
  std::size_t width = 0;
  for (const std::string& head : row_heads) {
    width = std::max(width, columns_of(head));
  }
  std::string out;
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    out += std::string(width - columns_of(row_heads[i]), ' ') + row_heads[i] + " ";
    for (const MatrixCell& cell : m.cells[i]) {
      out +=
          cell.value ? on_background("  ", heat_color(scale.goodness(*cell.value)), style) : "  ";
    }
    out += '\n';
  }
  out += fmt::format("{} {:.{}f} ", std::string(width, ' '), scale.worst, m.decimals);
  for (int step = 0; step <= 8; ++step) {
    out += on_background("  ", heat_color(step / 8.0), style);
  }
  return out + fmt::format(" {:.{}f} {}\n", scale.best, m.decimals, m.unit);
}

} // namespace

ColorScale color_scale_of(const Matrix& matrix) {
  constexpr double k_least_part = 0.8; // of the better value
  const Extremes e = extremes_of(matrix, 0);
  if (e.min > e.max) { // no value
    return {};
  }
  return matrix.higher_is_better ? ColorScale{std::min(e.min, k_least_part * e.max), e.max}
                                 : ColorScale{std::max(e.max, e.min / k_least_part), e.min};
}

std::string common_beginning(const std::vector<std::string>& ids) {
  std::string common = ids.empty() ? "" : ids.front();
  for (const std::string& id : ids) {
    const auto end = std::mismatch(common.begin(), common.end(), id.begin(), id.end()).first;
    common.erase(end, common.end());
  }
  while (!common.empty() && is_digit(common.back())) {
    common.pop_back();
  }
  const bool numbered = std::all_of(ids.begin(), ids.end(), [&](const std::string& id) {
    return id.size() > common.size() &&
           std::all_of(id.begin() + static_cast<std::ptrdiff_t>(common.size()), id.end(), is_digit);
  });
  return numbered ? common : "";
}

std::string render(const Matrix& m, const Style& style) {
  std::vector<std::string> ids = m.rows;
  ids.insert(ids.end(), m.columns.begin(), m.columns.end());
  const std::string beginning = common_beginning(ids);
  const auto head = [&](const std::string& id) { return printable(id.substr(beginning.size())); };
  std::vector<std::string> row_heads;
  std::transform(m.rows.begin(), m.rows.end(), std::back_inserter(row_heads), head);

  std::string out =
      titled(printable(m.title),
             printable(fmt::format(": row = source, column = destination ({}){}{}", m.unit,
                                   beginning.empty() ? "" : fmt::format("; ids {}*", beginning),
                                   m.setting.empty() ? "" : "; " + m.setting)),
             style);
  const Extremes e = extremes_of(m, beginning.size());
  const ColorScale scale = color_scale_of(m);
  Table table(0, ">");
  std::size_t total = 0;
  for (const std::string& column : m.columns) {
    table.column(head(column), Align::right);
  }
  std::size_t cell_width = 0;
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    std::vector<TableCell> row{{row_heads[i], Tone::strong}};
    for (const MatrixCell& cell : m.cells[i]) {
      TableCell shown(cell_text(m, cell), cell.value ? Tone::plain : Tone::dim);
      if (cell.value) {
        shown.background = heat_color(scale.goodness(*cell.value));
      }
      cell_width = std::max(cell_width, columns_of(shown.text));
      row.push_back(std::move(shown));
    }
    table.row(std::move(row));
  }
  total = m.columns.size() * (cell_width + 2);
  const bool fits = style.width == 0 || total <= static_cast<std::size_t>(style.width);
  out += fits || style.colors == Colors::none ? table.text(style)
                                              : colors_alone(m, scale, row_heads, style);
  if (!e.min_pair.empty()) {
    const std::string sum =
        m.higher_is_better ? fmt::format("sum {:.{}f}, ", e.sum, m.decimals) : "";
    out += folded(
        printable(fmt::format("{}min {:.{}f} ({}), max {:.{}f} ({}) {}", sum, e.min, m.decimals,
                              e.min_pair, e.max, m.decimals, e.max_pair, m.unit)),
        style);
  }
  return out;
}

} // namespace reckon
