// SPDX-License-Identifier: Apache-2.0
#include "compare/facts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>

namespace reckon {

std::string not_compared_table() {
  // One row for each document and reason, with all places that it holds for.
  using Row = std::pair<std::string, std::string>; // document, reason
  std::vector<Row> rows;
  std::map<Row, std::vector<std::string>> places;
  for (const FactRule& rule : fact_rules()) {
    if (rule.use != FactRule::Use::never) {
      continue;
    }
    const Row row(rule.kind, rule.text);
    if (!places.contains(row)) {
      rows.push_back(row);
    }
    places[row].push_back(fmt::format("`{}`", rule.where));
  }
  std::string table = "| document | what | why not |\n|---|---|---|\n";
  for (const Row& row : rows) {
    table += fmt::format("| {} | {} | {} |\n", row.first, fmt::join(places[row], ", "), row.second);
  }
  return table;
}

} // namespace reckon
