// SPDX-License-Identifier: Apache-2.0
#include "present/pair_text.hpp"

#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "present/key_text.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace reckon {
namespace {

using Row = std::map<std::uint64_t, const Cell*>; // by size

/// The rate of the bytes that the largest size has more than the one before; empty without two
/// sizes, or where noise makes it senseless.
std::string rate_beyond(const Row& row) {
  std::vector<const Cell*> valued;
  for (const auto& [bytes, cell] : row) {
    if (cell->has_value()) {
      valued.push_back(cell);
    }
  }
  if (valued.size() < 2) {
    return "";
  }
  const Cell& last = *valued.back();
  const Cell& before = *valued[valued.size() - 2];
  const double seconds = last.p50 - before.p50;
  if (!(seconds > 0)) {
    return "";
  }
  const double rate = static_cast<double>(last.key.bytes - before.key.bytes) / seconds;
  return network_rate_text(rate);
}

} // namespace

std::string pair_curves_table(const Cells& cells, const Style& style) {
  std::set<std::uint64_t> sizes;
  std::map<std::pair<std::string, std::string>, Row> rows;
  for (const Cell* cell : cells) {
    sizes.insert(cell->key.bytes);
    rows[{cell->key.from, cell->key.to}][cell->key.bytes] = cell;
  }
  std::vector<std::pair<std::pair<std::string, std::string>, Row>> ordered(rows.begin(),
                                                                           rows.end());
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.first.first != b.first.first ? natural_less(a.first.first, b.first.first)
                                          : natural_less(a.first.second, b.first.second);
  });
  Table table(2, "from|to");
  for (const std::uint64_t bytes : sizes) {
    table.column(to_text(Bytes(bytes)), Align::right);
  }
  table.column("beyond", Align::right);
  for (const auto& [pair, row] : ordered) {
    std::vector<TableCell> line{pair.first, pair.second};
    for (const std::uint64_t bytes : sizes) {
      const auto cell = row.find(bytes);
      const bool there = cell != row.end() && cell->second->has_value();
      line.emplace_back(cell == row.end() ? "" : value_text(cell->second),
                        there ? Tone::plain : Tone::dim);
    }
    line.emplace_back(rate_beyond(row));
    table.row(std::move(line));
  }
  const std::string rest = label_of(cells.front()->key, common_fields(cells));
  return titled(cells.front()->key.test,
                (rest.empty() ? "" : ", " + printable(rest)) + ": time of a write", style) +
         table.text(style);
}

} // namespace reckon
