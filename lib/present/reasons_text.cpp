// SPDX-License-Identifier: Apache-2.0
#include "present/profile_parts.hpp"
#include "present/ranges.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

bool is_wrong(CellStatus status) {
  return status == CellStatus::failed || status == CellStatus::mismatch ||
         status == CellStatus::timeout;
}

} // namespace

std::string reasons_text(const Cells& cells, std::size_t most, bool noisy, const Style& style) {
  struct Group {
    NumberRanges text;
    std::uint64_t count = 0;
    std::set<std::string> cases;
  };
  std::map<std::pair<CellStatus, std::string>, Group> groups;
  const auto add = [&](const Cell& cell, std::string_view reason) {
    NumberRanges text(reason);
    Group& group = groups[{cell.status, text.skeleton()}];
    group.text.merge(text);
    group.cases.insert(cell.key.test);
    ++group.count;
  };
  for (const Cell* cell : cells) {
    if (cell->has_value() && !(noisy && cell->status == CellStatus::noisy)) {
      continue;
    }
    std::string_view reasons = cell->reason;
    if (cell->status != CellStatus::noisy) {
      add(*cell, reasons);
      continue;
    }
    while (!reasons.empty()) {
      const std::size_t end = std::min(reasons.find("; "), reasons.size());
      add(*cell, reasons.substr(0, end));
      reasons.remove_prefix(std::min(end + 2, reasons.size()));
    }
  }
  if (groups.empty()) {
    return "";
  }
  std::string counts;
  if (noisy) {
    const auto missing = static_cast<std::size_t>(std::count_if(
        cells.begin(), cells.end(), [](const Cell* cell) { return !cell->has_value(); }));
    const auto doubtful =
        static_cast<std::size_t>(std::count_if(cells.begin(), cells.end(), [](const Cell* cell) {
          return cell->status == CellStatus::noisy;
        }));
    counts = fmt::format(": {} and {} of {} cells; one with several reasons counts for each",
                         doubtful, missing, cells.size());
  }
  // What failed first, then what is missing, then what is noisy; the most frequent first.
  std::vector<std::pair<CellStatus, const Group*>> order;
  for (const auto& [key, group] : groups) {
    order.emplace_back(key.first, &group);
  }
  const auto rank = [](CellStatus status) {
    return status == CellStatus::noisy ? 2 : (is_wrong(status) ? 0 : 1);
  };
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    return std::pair(rank(a.first), b.second->count) < std::pair(rank(b.first), a.second->count);
  });
  Table table(2, "|>cells|case|~reason");
  for (std::size_t i = 0; i < std::min(order.size(), most); ++i) {
    const auto& [status, group] = order[i];
    table.row(
        {{(status == CellStatus::noisy ? "~ " : "") + std::string(name_of(status)),
          is_wrong(status) ? Tone::bad : (status == CellStatus::noisy ? Tone::warning : Tone::dim)},
         fmt::format("{}", group->count),
         group->cases.size() == 1 ? *group->cases.begin()
                                  : fmt::format("{} cases", group->cases.size()),
         group->text.text()});
  }
  std::string out = "\n" +
                    titled(noisy ? "doubtful or not measured" : "not measured", counts, style) +
                    table.text(style);
  if (order.size() > most) {
    out += fmt::format("  and {} more; `reckon show --csv` has the reasons of every cell\n",
                       order.size() - most);
  }
  return out;
}

} // namespace reckon
