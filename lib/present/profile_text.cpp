// SPDX-License-Identifier: Apache-2.0
#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "present/contention_text.hpp"
#include "present/document_text.hpp"
#include "present/endpoint_text.hpp"
#include "present/groups.hpp"
#include "present/key_text.hpp"
#include "present/matrix.hpp"
#include "present/numbers.hpp"
#include "present/pair_text.hpp"
#include "present/profile_parts.hpp"
#include "present/rails_text.hpp"
#include "present/table.hpp"
#include "present/topology_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_most_sizes = 14;

/// "91 % of", "1.39 times": what a cell is in units of its ceiling, which caches can exceed.
std::string share_text(double share) {
  return share > 1 ? fmt::format("{:.2f} times", share) : percent_text(share) + " of";
}

/// One line on the cell that comes nearest to its ceiling; empty when no cell has one.
std::string ceiling_line(const Cells& cells, const Style& style) {
  const Cell* best = nullptr;
  for (const Cell* cell : cells) {
    const auto share = ceiling_share(*cell);
    if (share && (best == nullptr || *share > *ceiling_share(*best))) {
      best = cell;
    }
  }
  if (best == nullptr) {
    return "";
  }
  return folded(
      printable(fmt::format("best cell: {}, {} its ceiling, {} ({})",
                            quantity_text(best->p50, best->unit), share_text(*ceiling_share(*best)),
                            quantity_text(best->ceiling->value, best->unit), best->ceiling->name)),
      style);
}

/// Sizes to show: all, or powers of two, evenly thinned out, the largest always among them.
std::vector<std::uint64_t> thinned(const std::set<std::uint64_t>& sizes) {
  std::vector<std::uint64_t> out(sizes.begin(), sizes.end());
  if (out.size() <= k_most_sizes) {
    return out;
  }
  std::vector<std::uint64_t> powers;
  std::copy_if(out.begin(), out.end(), std::back_inserter(powers),
               [](std::uint64_t size) { return std::has_single_bit(size); });
  if (powers.size() >= 3) {
    out = std::move(powers);
  }
  const std::size_t step = (out.size() + k_most_sizes - 1) / k_most_sizes;
  std::vector<std::uint64_t> kept;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if ((out.size() - 1 - i) % step == 0) {
      kept.push_back(out[i]);
    }
  }
  return kept;
}

/// Several curves of one case side by side: a row a size, a column a curve.
std::string curves_text(const std::vector<Cells>& curves, const Style& style) {
  Cells all;
  std::set<std::uint64_t> sizes;
  std::vector<std::map<std::uint64_t, const Cell*>> series;
  for (const Cells& curve : curves) {
    auto& by_size = series.emplace_back();
    for (const Cell* cell : curve) {
      all.push_back(cell);
      sizes.insert(cell->key.bytes);
      by_size[cell->key.bytes] = cell;
    }
  }
  const KeyFields varying = without(varying_fields(all), KeyField::bytes);
  Table table(0, ">size");
  for (const Cells& curve : curves) {
    table.column(label_of(curve.front()->key, varying, "\n"), Align::right);
  }
  const bool latency = !moves_its_bytes(all.front()->key) && !is_rate(*all.front());
  const bool times = !is_rate(*all.front());
  if (times && !latency) {
    std::vector<TableCell> row{"smallest"};
    for (const Cells& curve : curves) {
      const auto first =
          std::find_if(curve.begin(), curve.end(), [](const Cell* c) { return c->has_value(); });
      row.emplace_back(value_text(*first));
    }
    table.row(std::move(row));
  }
  for (const std::uint64_t size : thinned(sizes)) {
    std::vector<TableCell> row{to_text(Bytes(size))};
    for (const auto& curve : series) {
      const auto it = curve.find(size);
      if (it == curve.end()) {
        row.emplace_back();
        continue;
      }
      const Cell& cell = *it->second;
      const auto rate = rate_of(cell);
      if (latency || !rate) {
        row.emplace_back(value_text(&cell), cell.has_value() ? Tone::plain : Tone::dim);
      } else {
        row.emplace_back((cell.status == CellStatus::noisy ? "~" : "") + gb_per_s_text(*rate));
      }
    }
    table.row(std::move(row));
  }
  const std::string rest = label_of(all.front()->key, without(common_fields(all), KeyField::bytes));
  return heading(all.front()->key.test,
                 (rest.empty() ? "" : ", " + rest) + convention_text(all) +
                     (latency ? ": time"
                              : (times ? ": time of the smallest size, then GB/s" : ": GB/s")),
                 style) +
         table.text(style) + ceiling_line(all, style);
}

/// One curve in full.
std::string curve_text(const Cells& cells, const Style& style) {
  CellKey key = cells.front()->key;
  key.bytes = 0;
  std::string out =
      "# " + heading(key.test, " " + label_of(key, all_fields()) + convention_text(cells), style);
  const bool times = !is_rate(*cells.front());
  Table table(0, times ? ">#bytes|>n|>t_min|>p50|>p99" : ">#bytes|>n|>max|>p50|>p99");
  table.columns(moves_its_bytes(key) ? ">GB/s|>spread|~ceiling or reason"
                                     : ">|>spread|~ceiling or reason");
  for (const Cell* cell : cells) {
    if (!cell->has_value()) {
      table.row({fmt::format("{}", cell->key.bytes),
                 "",
                 "",
                 "",
                 "",
                 "",
                 "",
                 {fmt::format("{}: {}", name_of(cell->status), cell->reason), Tone::dim}});
      continue;
    }
    const auto text = [&](double v) { return times ? time_text(v) : gb_per_s_text(v); };
    std::string remark = cell->status == CellStatus::noisy ? "noisy: " + cell->reason : "";
    if (const auto share = ceiling_share(*cell)) {
      remark = fmt::format("{} {}{}{}", share_text(*share), cell->ceiling->name,
                           remark.empty() ? "" : "; ", remark);
    }
    const auto rate = rate_of(*cell);
    table.row({fmt::format("{}", cell->key.bytes),
               fmt::format("{}", cell->n),
               text(times ? cell->min : cell->max),
               text(cell->p50),
               text(cell->p99),
               rate ? gb_per_s_text(*rate) : "",
               percent_text(cell->spread),
               {std::move(remark), Tone::dim}});
  }
  return out + table.text(style);
}

/// Over a table of such cells: what all of them have in common, and what their numbers are.
std::string heading_of(const Cells& cells, const KeyFields& fixed, const Style& style) {
  const std::string common = label_of(cells.front()->key, fixed);
  return heading(cells.front()->key.test,
                 (common.empty() ? "" : ", " + common) + convention_text(cells) +
                     (is_rate(*cells.front()) ? ": GB/s" : ": time"),
                 style);
}

/// A row for each setting, a column for each number of threads, or of pairs.
std::string pivot_text(const Cells& cells, KeyField across, const Style& style) {
  const KeyFields fixed = common_fields(cells);
  const KeyFields rows_by = without(varying_fields(cells), across);
  std::map<int, std::string> columns;
  std::map<CellKey, std::map<int, const Cell*>> rows;
  for (const Cell* cell : cells) {
    CellKey key = cell->key;
    int& number = across == KeyField::threads ? key.threads : key.pairs;
    const int column = number;
    number = 0;
    columns[column] = column > 0 ? field_text(cell->key, across) : is_rate(*cell) ? "GB/s" : "time";
    rows[key][column] = cell;
  }
  Table table(0);
  std::vector<KeyField> heads;
  for (const KeyField field : all_fields()) {
    if (has(rows_by, field)) {
      heads.push_back(field);
      table.column(name_of(field));
    }
  }
  for (const auto& [number, head] : columns) {
    static_cast<void>(number);
    table.column(head, Align::right);
  }
  // In the order in which the columns read; sizes stay in theirs, which is by value.
  std::vector<std::pair<CellKey, std::map<int, const Cell*>>> ordered(rows.begin(), rows.end());
  std::stable_sort(ordered.begin(), ordered.end(), [&](const auto& a, const auto& b) {
    for (const KeyField field : without(heads, KeyField::bytes)) {
      const std::string x = field_text(a.first, field);
      const std::string y = field_text(b.first, field);
      if (x != y) {
        return natural_less(x, y);
      }
    }
    return false;
  });
  for (const auto& [key, by_column] : ordered) {
    std::vector<TableCell> row;
    for (const KeyField field : heads) {
      row.emplace_back(field_text(key, field));
    }
    for (const auto& [number, head] : columns) {
      static_cast<void>(head);
      const auto it = by_column.find(number);
      const bool valued = it != by_column.end() && it->second->has_value();
      row.emplace_back(it == by_column.end() ? std::string() : value_text(it->second),
                       valued ? Tone::plain : Tone::dim);
    }
    table.row(std::move(row));
  }
  return heading_of(cells, fixed, style) + table.text(style) + ceiling_line(cells, style);
}

/// Whatever has no more special form.
std::string list_text(const Cells& cells, const Style& style) {
  const KeyFields fixed = common_fields(cells);
  Table table(0);
  std::vector<KeyField> heads;
  const KeyFields rows_by = cells.size() == 1 ? KeyFields{} : varying_fields(cells);
  for (const KeyField field : all_fields()) {
    if (has(rows_by, field)) {
      heads.push_back(field);
      table.column(name_of(field), field == KeyField::bytes ? Align::right : Align::left);
    }
  }
  const bool rate = is_rate(*cells.front());
  table.columns(rate ? ">n|>max|>p50|>p99|>spread" : ">n|>min|>p50|>p99|>spread");
  if (std::any_of(cells.begin(), cells.end(),
                  [](const Cell* cell) { return !cell->has_value() || ceiling_share(*cell); })) {
    table.columns("~ceiling or reason");
  }
  for (const Cell* cell : cells) {
    std::vector<TableCell> row;
    for (const KeyField field : heads) {
      row.emplace_back(field_text(cell->key, field));
    }
    if (cell->has_value()) {
      const auto text = [&](double v) { return is_rate(*cell) ? gb_per_s_text(v) : time_text(v); };
      row.emplace_back(fmt::format("{}", cell->n));
      row.emplace_back(text(is_rate(*cell) ? cell->max : cell->min));
      row.emplace_back(value_text(cell));
      row.emplace_back(text(cell->p99));
      row.emplace_back(percent_text(cell->spread));
      const auto share = ceiling_share(*cell);
      row.emplace_back(share ? fmt::format("{} {}", share_text(*share), cell->ceiling->name) : "",
                       Tone::dim);
    } else {
      row.resize(row.size() + 5);
      row.emplace_back(fmt::format("{}: {}", name_of(cell->status), cell->reason), Tone::dim);
    }
    table.row(std::move(row));
  }
  return heading_of(cells, fixed, style) + table.text(style);
}

} // namespace

std::string context_text(const Profile& p, const Style& style) {
  Table context(2, "|~");
  for (const auto& [name, text] : p.context) {
    context.row({{name, Tone::dim}, text});
  }
  return heading("profile " + p.name, ", " + p.source, style) + context.text(style);
}

std::string machines_text(const Profile& p, const Style& style) {
  Table table(2, "machine|name|>count|>cores|>memory");
  for (const MachineGroup& m : p.machines) {
    table.row({m.id, m.name, fmt::format("{}", m.count), cores_text(m),
               m.memory_bytes > 0 ? to_text(Bytes(m.memory_bytes)) : "?"});
  }
  return table.text(style);
}

std::string fits_text(const Profile& p, const std::string& test, const Style& style) {
  std::vector<const Fit*> shown;
  for (const Fit& fit : p.fits) {
    if (test.empty() || fit.key.test == test) {
      shown.push_back(&fit);
    }
  }
  if (shown.empty()) {
    return "";
  }
  Table table(2, "~|>from|>to|>alpha|>GB/s|>residual|>knee");
  for (const Fit* fit : shown) {
    bool first = true;
    for (const FitSegment& s : fit->segments) {
      const std::string label = fit->key.test + " " + label_of(fit->key, all_fields());
      // The time does not grow: what the fit says of the rate is only that it is large.
      const bool flat =
          (s.to_bytes - s.from_bytes) / s.bandwidth_bytes_per_second < 0.01 * s.alpha_seconds;
      table.row({first ? label : "", bytes_text(s.from_bytes), bytes_text(s.to_bytes),
                 time_text(s.alpha_seconds),
                 flat ? "flat" : gb_per_s_text(s.bandwidth_bytes_per_second),
                 percent_text(s.relative_residual),
                 first && fit->knee_bytes > 0 ? bytes_text(fit->knee_bytes) : ""});
      first = false;
    }
  }
  return "\n" +
         heading("fits", ": time = alpha + bytes / rate on each range; knee: 90 % of the best rate",
                 style) +
         table.text(style);
}

std::string topology_text(const Profile& p, const Style& style, const LinkRemark& remark) {
  const auto measured = [&p](const LinkEnd& link) {
    CellKey key;
    key.test = k_link_bandwidth;
    key.from = link.from;
    key.to = link.to;
    double best = 0;
    for (const Cell* const cell : p.select(key)) {
      best = is_rate(*cell) && cell->key.direction != "two_way" ? std::max(best, cell->p50) : best;
    }
    return best;
  };
  return topology_text(p.topology, style, measured, remark);
}

namespace {

std::string samples_text(const Cells& cells, const Style& style) {
  Table table(2, "|~samples");
  for (const Cell* cell : cells) {
    if (!cell->samples.empty()) {
      table.row({cell->key.text(), fmt::format("{}", fmt::join(cell->samples, " "))});
    }
  }
  return "\n" + heading("samples", ", in seconds or bytes per second", style) + table.text(style);
}

} // namespace

std::string heading(const std::string& title, const std::string& rest, const Style& style) {
  return titled(printable(title), printable(rest), style);
}

std::string case_text(const Cells& cells, bool in_full, const Style& style) {
  CaseGroups groups = groups_of(cells);
  // A few sizes by many settings read better as rows of a table over threads than as curves.
  constexpr std::size_t k_few_sizes = 4;
  const bool short_curves =
      std::all_of(groups.curves.begin(), groups.curves.end(),
                  [](const Cells& curve) { return curve.size() <= k_few_sizes; });
  const bool pairs = is_pair_curve(cells.front()->key) && any_value(cells);
  if (!in_full && !pairs && short_curves && groups.curves.size() > 1) {
    for (const Cells& curve : groups.curves) {
      groups.others.insert(groups.others.end(), curve.begin(), curve.end());
    }
    groups.curves.clear();
    std::sort(groups.others.begin(), groups.others.end(),
              [](const Cell* a, const Cell* b) { return a->key < b->key; });
  }
  std::vector<std::string> blocks;
  if (pairs) {
    blocks.push_back(pair_curves_table(cells, style));
    groups.others.clear();
  }
  for (const Cells& matrix : groups.matrices) {
    blocks.push_back(render(matrix_of(matrix), style) + ceiling_line(matrix, style));
  }
  if (in_full) {
    for (const Cells& curve : groups.curves) {
      blocks.push_back(curve_text(curve, style));
    }
  } else if (!groups.curves.empty() && !pairs) {
    blocks.push_back(curves_text(groups.curves, style));
  }
  if (any_value(groups.others)) {
    const KeyFields varying = varying_fields(groups.others);
    if (!in_full && has(varying, KeyField::threads)) {
      blocks.push_back(pivot_text(groups.others, KeyField::threads, style));
    } else if (!in_full && has(varying, KeyField::pairs)) {
      blocks.push_back(pivot_text(groups.others, KeyField::pairs, style));
    } else {
      blocks.push_back(list_text(groups.others, style));
    }
  }
  return fmt::format("{}", fmt::join(blocks, "\n"));
}

std::string render(const Profile& p, const Style& style, const ShowOptions& options) {
  const Cells wanted = cells_of(p, options.test);
  std::string out;
  if (options.test.empty()) {
    out += context_text(p, style) + "\n" + machines_text(p, style);
    out += p.endpoint ? "\n" + endpoint_text(*p.endpoint, style) : "";
    const std::string tree = topology_text(p, style);
    out += tree.empty() ? "" : "\n" + tree;
    const std::string settings = settings_text(p, style);
    out += settings.empty() ? "" : "\n" + settings;
  }
  for (const std::string& test : cases_of(p)) {
    if (options.test.empty() || options.test == test) {
      const Cells cells = cells_of(p, test);
      std::string text = is_contention(cells.front()->key) ? contention_table(p, test, style)
                         : test == k_rail_bandwidth        ? rails_table(cells, style)
                                                           : "";
      if (text.empty() || !options.test.empty()) {
        text += (text.empty() ? "" : "\n") + case_text(cells, !options.test.empty(), style);
      }
      out += (out.empty() || text.empty() ? "" : "\n") + text;
    }
  }
  out += fits_text(p, options.test, style) + reasons_text(wanted, 20, true, style);
  if (options.samples) {
    out += samples_text(wanted, style);
  }
  return out;
}

} // namespace reckon
