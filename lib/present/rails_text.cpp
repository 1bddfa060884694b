// SPDX-License-Identifier: Apache-2.0
#include "present/rails_text.hpp"

#include "core/name_ranges.hpp"
#include "documents/cells.hpp"
#include "present/key_text.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace reckon {
namespace {

struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const { return natural_less(a, b); }
  bool operator()(const std::pair<std::string, std::string>& a,
                  const std::pair<std::string, std::string>& b) const {
    return a.first != b.first ? natural_less(a.first, b.first) : natural_less(a.second, b.second);
  }
};
using ByRail = std::map<std::string, const Cell*, NaturalOrder>;

std::string rail_rate(const Cell* cell) {
  return cell == nullptr || !cell->has_value()
             ? missing_text(cell)
             : (cell->status == CellStatus::noisy ? "~" : "") + network_rate_text(cell->p50);
}

} // namespace

std::string rails_table(const Cells& cells, const Style& style) {
  std::map<std::pair<std::string, std::string>, ByRail, NaturalOrder> ways;
  std::map<std::string, std::set<std::string>, NaturalOrder> ports; // by rail
  for (const Cell* cell : cells) {
    const CellKey& key = cell->key;
    const std::size_t from = key.from.find('/'), to = key.to.find('/');
    ways[{key.from.substr(0, from), key.to.substr(0, to)}][key.operation] = cell;
    if (key.operation != k_rails_at_once && from != key.from.npos) {
      ports[key.operation].insert(key.from.substr(from + 1));
    }
  }
  if (ways.empty()) {
    return "";
  }
  Table table(2, "from|to");
  for (const auto& [rail, names] : ports) {
    table.column(names.size() == 1 ? *names.begin() : rail, Align::right);
  }
  table.columns(">at once|>sum|>of it");
  for (auto& [way, row] : ways) {
    std::vector<TableCell> line{way.first, way.second};
    double sum = 0;
    bool whole = true;
    for (const auto& [rail, names] : ports) {
      const Cell* const cell = row[rail];
      const bool there = cell != nullptr && cell->has_value();
      line.emplace_back(rail_rate(cell), there ? Tone::plain : Tone::dim);
      sum += there ? cell->p50 : 0;
      whole = whole && there;
    }
    const Cell* const all = row[k_rails_at_once];
    const bool known = all != nullptr && all->has_value() && whole;
    line.emplace_back(rail_rate(all), known ? Tone::plain : Tone::dim);
    line.emplace_back(whole ? network_rate_text(sum) : "");
    line.emplace_back(known ? fmt::format("{:.0f} %", 100 * all->p50 / sum) : "");
    table.row(std::move(line));
  }
  const CellKey& first = cells.front()->key;
  return titled(first.test,
                fmt::format(", {}, two ways: each rail alone, and all at once", first.transport),
                style) +
         table.text(style);
}

} // namespace reckon
