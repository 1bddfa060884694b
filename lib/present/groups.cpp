// SPDX-License-Identifier: Apache-2.0
#include "present/groups.hpp"

#include "core/error.hpp"
#include "core/json_fwd.hpp"
#include "core/name_ranges.hpp"
#include "documents/cells.hpp"
#include "documents/contention.hpp"
#include "present/key_text.hpp"
#include "present/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace reckon {
namespace {

CellKey without_endpoints(CellKey key) {
  key.from.clear();
  key.to.clear();
  return key;
}

CellKey without_bytes(CellKey key) {
  key.bytes = 0;
  return key;
}

std::map<CellKey, Cells> grouped(const Cells& cells, CellKey (*key_of)(CellKey)) {
  std::map<CellKey, Cells> out;
  for (const Cell* cell : cells) {
    out[key_of(cell->key)].push_back(cell);
  }
  return out;
}

} // namespace

bool is_rate(const Cell& cell) {
  return cell.unit == "bytes_per_second";
}

std::string cores_text(const MachineGroup& machine) {
  return machine.cores > 0 ? fmt::format("{}", machine.cores) : "?";
}

bool is_pair_curve(const CellKey& key) {
  return key.test == k_pair_write;
}

bool any_value(const Cells& cells) {
  return std::any_of(cells.begin(), cells.end(), [](const Cell* c) { return c->has_value(); });
}

bool moves_its_bytes(const CellKey& key) {
  return key.test.find("latency") == std::string::npos;
}

std::optional<double> rate_of(const Cell& cell) {
  if (!cell.has_value()) {
    return std::nullopt;
  }
  if (is_rate(cell)) {
    return cell.p50;
  }
  return cell.key.bytes > 0 && cell.p50 > 0 && moves_its_bytes(cell.key)
             ? std::optional(static_cast<double>(cell.key.bytes) / cell.p50)
             : std::nullopt;
}

std::optional<double> ceiling_share(const Cell& cell) {
  if (!cell.has_value() || !cell.ceiling) {
    return std::nullopt;
  }
  return is_rate(cell) ? cell.p50 / cell.ceiling->value : cell.ceiling->value / cell.p50;
}

std::string convention_text(const Cells& cells) {
  std::set<std::string> all;
  for (const Cell* cell : cells) {
    if (!cell->bytes_convention.empty()) {
      all.insert(cell->bytes_convention);
    }
  }
  // "payload", each byte once, is what one expects.
  return all == std::set<std::string>{"stream"} ? ", reads and writes counted" : "";
}

std::string missing_text(const Cell* cell) {
  if (cell == nullptr || cell->status == CellStatus::unsupported) {
    return "N/A";
  }
  return std::string(name_of(cell->status));
}

std::string value_text(const Cell* cell) {
  if (cell == nullptr || !cell->has_value()) {
    return missing_text(cell);
  }
  return (cell->status == CellStatus::noisy ? "~" : "") +
         (is_rate(*cell) ? gb_per_s_text(cell->p50) : time_text(cell->p50));
}

std::string fact(const Profile& profile, const char* name) {
  const auto it = profile.context.find(name);
  return it == profile.context.end() ? "" : it->second;
}

std::vector<std::string> cases_of(const Profile& profile) {
  std::set<std::string> names;
  for (const Cell& cell : profile.cells) {
    names.insert(cell.key.test);
  }
  std::vector<std::string> out;
  for (const CellCase& known : cell_cases()) {
    if (names.erase(known.name) > 0) {
      out.emplace_back(known.name);
    }
  }
  out.insert(out.end(), names.begin(), names.end());
  return out;
}

std::string case_between_machines(const Profile& profile) {
  const auto is_machine = [](const std::string& id) { return id.find('/') == id.npos; };
  for (const char* const test : {k_pair_bandwidth, k_pair_latency}) {
    if (profile.select({.test = test}).empty()) {
      continue;
    }
    const std::vector<Cells> matrices = groups_of(cells_of(profile, test)).matrices;
    if (std::any_of(matrices.begin(), matrices.end(), [&](const Cells& cells) {
          return std::all_of(cells.begin(), cells.end(), [&](const Cell* cell) {
            return is_machine(cell->key.from) && is_machine(cell->key.to);
          });
        })) {
      return test;
    }
  }
  return "";
}

Cells cells_of(const Profile& profile, const std::string& test) {
  Cells out;
  for (const Cell& cell : profile.cells) {
    if (test.empty() || cell.key.test == test) {
      out.push_back(&cell);
    }
  }
  if (out.empty() && !test.empty()) {
    const std::vector<std::string> names = cases_of(profile);
    const std::string near = did_you_mean(test, names);
    fail(ErrorKind::usage,
         fmt::format("this profile has no case '{}'; {}it has {}", test,
                     near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                     names.empty() ? "no cells" : fmt::format("{}", fmt::join(names, ", "))));
  }
  std::sort(out.begin(), out.end(), [](const Cell* a, const Cell* b) { return a->key < b->key; });
  return out;
}

CaseGroups groups_of(const Cells& cells) {
  CaseGroups out;
  Cells rest;
  for (auto& [key, panel] : grouped(cells, &without_endpoints)) {
    // Of contention the sizes matter, and what runs beside.
    const CellKey& first = panel.front()->key;
    const bool between = !first.to.empty() && !is_contention(first) && !is_pair_curve(first);
    if (between && panel.size() >= 2 && any_value(panel)) {
      out.matrices.push_back(std::move(panel));
    } else {
      rest.insert(rest.end(), panel.begin(), panel.end());
    }
  }
  for (auto& [key, curve] : grouped(rest, &without_bytes)) {
    if (curve.size() >= 3 && any_value(curve)) {
      std::sort(curve.begin(), curve.end(),
                [](const Cell* a, const Cell* b) { return a->key.bytes < b->key.bytes; });
      out.curves.push_back(std::move(curve));
    } else {
      out.others.insert(out.others.end(), curve.begin(), curve.end());
    }
  }
  return out;
}

Matrix matrix_of(const Cells& cells) {
  Matrix m;
  const KeyFields fixed = common_fields(cells);
  std::map<std::pair<std::string, std::string>, const Cell*> by_pair;
  const auto place = [](std::vector<std::string>& ids, const std::string& id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) {
      ids.push_back(id);
    }
  };
  for (const Cell* cell : cells) {
    by_pair[{cell->key.from, cell->key.to}] = cell;
    place(m.rows, cell->key.from);
    place(m.columns, cell->key.to);
  }
  std::sort(m.rows.begin(), m.rows.end(), natural_less);
  std::sort(m.columns.begin(), m.columns.end(), natural_less);
  const bool rate = is_rate(*cells.front());
  m.higher_is_better = rate;
  // Latencies up to some hundred nanoseconds are read in ns, whatever is larger in us.
  double largest = 0;
  for (const Cell* cell : cells) {
    largest = std::max(largest, cell->has_value() ? cell->p50 : 0);
  }
  const bool ns = largest < 1e-5;
  const bool slow = rate && largest < 1e8; // a network of less than a gigabit
  m.unit = rate ? (slow ? "MB/s" : "GB/s") : (ns ? "ns" : "us");
  m.decimals = rate ? 2 : (ns && largest >= 1e-7 ? 0 : 1);
  const double scale = rate ? (slow ? 1e-6 : 1e-9) : (ns ? 1e9 : 1e6);
  m.title = cells.front()->key.test;
  m.setting = label_of(cells.front()->key, fixed) + convention_text(cells);
  for (const std::string& from : m.rows) {
    auto& row = m.cells.emplace_back();
    for (const std::string& to : m.columns) {
      const auto it = by_pair.find({from, to});
      const Cell* cell = it == by_pair.end() ? nullptr : it->second;
      MatrixCell& shown = row.emplace_back();
      if (cell != nullptr && cell->has_value()) {
        shown.value = cell->p50 * scale;
        shown.noisy = cell->status == CellStatus::noisy;
        shown.ceiling_share = ceiling_share(*cell);
        shown.ceiling = cell->ceiling ? cell->ceiling->name : "";
      } else {
        shown.text = missing_text(cell);
      }
    }
  }
  return m;
}

} // namespace reckon
