// SPDX-License-Identifier: Apache-2.0
#include "present/document_text.hpp"

#include "core/units.hpp"
#include "documents/cells.hpp"
#include "present/groups.hpp"
#include "present/numbers.hpp"
#include "present/profile_parts.hpp"
#include "present/rails_text.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace reckon {
namespace {

TableCell rate_cell(const Cell* cell) {
  if (cell == nullptr || !cell->has_value()) {
    return {missing_text(cell), Tone::dim};
  }
  return {(cell->status == CellStatus::noisy ? "~" : "") + network_rate_text(cell->p50)};
}

std::string machines(const Profile& p, const Style& style) {
  Table table(2, "group|~machines|>count|>cores|rack|>port, each way");
  for (const MachineGroup& m : p.machines) {
    CellKey key;
    key.test = k_port_bandwidth;
    key.from = m.id;
    const std::vector<const Cell*> ports = p.select(key);
    table.row({m.id, m.name, fmt::format("{}", m.count), cores_text(m), m.rack,
               rate_cell(ports.empty() ? nullptr : ports.front())});
  }
  return table.text(style);
}

std::string matrices(const Profile& p, const std::string& test, const std::string& direction,
                     const Style& style) {
  Cells cells;
  for (const Cell& cell : p.cells) {
    if (cell.key.test == test && (direction.empty() || cell.key.direction == direction)) {
      cells.push_back(&cell);
    }
  }
  return any_value(cells) ? "\n" + render(matrix_of(cells), style) : "";
}

/// A row a machine, then one for each of several network ports of a machine.
std::string ports(const Profile& p, const Style& style) {
  using Row = std::map<std::string, const Cell*>;
  std::vector<std::pair<std::string, Row>> rows;
  for (const MachineGroup& group : p.machines) {
    for (const std::string& member : group.members) {
      Row row;
      for (const Cell& cell : p.cells) {
        if (cell.key.from == member && cell.key.test.starts_with("fan_")) {
          row[cell.key.test + " " + cell.key.direction] = &cell;
        }
      }
      if (!row.empty()) {
        rows.emplace_back(member, std::move(row));
      }
    }
  }
  if (rows.empty()) {
    return "";
  }
  Table table(2, "machine|>in|>out|>in, both ways|>out, both ways|~");
  for (auto& [member, row] : rows) {
    const Cell* const both = row["fan_in_bandwidth two_way"];
    table.row({member,
               rate_cell(row["fan_in_bandwidth one_way"]),
               rate_cell(row["fan_out_bandwidth one_way"]),
               rate_cell(both),
               rate_cell(row["fan_out_bandwidth two_way"]),
               {both == nullptr ? "" : both->reason, Tone::dim}});
  }
  CellKey single;
  single.test = k_single_port;
  for (const Cell* cell : p.select(single)) {
    const TopologyObject* const port = p.topology.find(cell->key.from);
    table.row(
        {cell->key.from,
         "",
         "",
         rate_cell(cell),
         rate_cell(cell),
         {fmt::format("network port {} alone", port == nullptr ? "" : port->name), Tone::dim}});
  }
  return "\n" + titled("ports", ", several machines at once to or from one", style) +
         table.text(style);
}

std::string rails(const Profile& p, const Style& style) {
  const std::string table = rails_table(p.select({.test = k_rail_bandwidth}), style);
  return table.empty() ? "" : "\n" + table;
}

std::string shared(const Profile& p, const Style& style) {
  Table table(2, "|>each way|>of the ports|~");
  bool any = false;
  for (const Cell& cell : p.cells) {
    const std::string& test = cell.key.test;
    if (!test.starts_with("bisection_") && test != k_uplink) {
      continue;
    }
    any = true;
    const bool known = cell.has_value() && cell.ceiling && cell.ceiling->value > 0;
    const double share = known ? cell.p50 / cell.ceiling->value : 1;
    table.row({cell.key.from.empty() ? test : fmt::format("{} of {}", test, cell.key.from),
               rate_cell(&cell),
               {known ? fmt::format("{:.0f} %", 100 * share) : "",
                share < 0.95 ? Tone::warning : Tone::good},
               {cell.reason, Tone::dim}});
  }
  std::string text = any ? "\n" + titled("what machines share", "", style) + table.text(style) : "";
  if (const std::string verdict = fact(p, "bisection"); !verdict.empty()) {
    const bool full = !verdict.starts_with("not full");
    text += "\n" +
            toned("bisection bandwidth " + printable(verdict), full ? Tone::good : Tone::warning,
                  style) +
            "\n";
  }
  return text;
}

} // namespace

std::string render_cluster(const Profile& p, const Style& style) {
  std::string text =
      titled(p.name, fmt::format(", {}; took {}", fact(p, "transport"), fact(p, "took")), style) +
      machines(p, style);
  text += matrices(p, k_pair_latency, "", style);
  text += matrices(p, k_pair_bandwidth, "two_way", style);
  text += ports(p, style);
  text += rails(p, style);
  text += shared(p, style);
  text += reasons_text(cells_of(p, ""), 8, false, style);
  const auto noisy = std::count_if(p.cells.begin(), p.cells.end(),
                                   [](const Cell& c) { return c.status == CellStatus::noisy; });
  if (noisy > 0) {
    text += toned(fmt::format("\n~ noisy: {} of {} cells varied much or were disturbed; `reckon "
                              "show` says which and why\n",
                              noisy, p.cells.size()),
                  Tone::dim, style);
  }
  return text;
}

} // namespace reckon
