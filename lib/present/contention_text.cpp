// SPDX-License-Identifier: Apache-2.0
#include "present/contention_text.hpp"

#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "present/groups.hpp"
#include "present/key_text.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace reckon {
namespace {

/// gemm_256 before gemm_1000.
struct Naturally {
  bool operator()(const std::string& a, const std::string& b) const { return natural_less(a, b); }
};

/// A row is everything but the computation; sizes follow each other.
struct ByTrafficAndSize {
  bool operator()(const CellKey& a, const CellKey& b) const {
    return std::tie(a.from, a.to, a.threads, a.bytes, a) <
           std::tie(b.from, b.to, b.threads, b.bytes, b);
  }
};

CellKey row_of(CellKey key) {
  key.test = k_contention_communication;
  key.operation.clear();
  return key;
}

std::string factor_text(const Contention& c) {
  const bool noisy =
      c.together->status == CellStatus::noisy || c.alone->status == CellStatus::noisy;
  const std::string text = fmt::format("{}{}x", noisy ? "~" : "", significant(c.factor, 3));
  return c.shown == false ? "(" + text + ")" : text;
}

/// Nothing where the processors do not communicate: a GPU's copies and sums have no threads.
std::string count_text(int threads) {
  return threads > 0 ? fmt::format("{}", threads) : "";
}

} // namespace

std::string traffic_text(const CellKey& key) {
  return key.sources > 0 ? "sum on " + key.from : fmt::format("copy {} -> {}", key.from, key.to);
}

std::string contention_table(const Profile& profile, const std::string& test, const Style& style) {
  const bool of_compute = test == k_contention_compute;
  std::set<std::string, Naturally> operations;
  std::map<CellKey, std::map<std::string, const Cell*>, ByTrafficAndSize> together;    // by row
  std::map<std::pair<std::string, int>, std::map<std::string, const Cell*>> computing; // alone
  for (const Cell* cell : cells_of(profile, test)) {
    if (!cell->key.operation.empty()) {
      operations.insert(cell->key.operation);
    }
    if (alone(cell->key)) {
      together[row_of(cell->key)][cell->key.operation] = cell;
    } else if (of_compute) {
      computing[{cell->key.from, cell->key.threads}][cell->key.operation] = cell;
    } else {
      static_cast<void>(together[cell->key]); // a row even without anything beside it
    }
  }
  std::map<const Cell*, Contention> factors;
  for (const Contention& c : contention_of(profile, test)) {
    factors.emplace(c.together, c);
  }
  Table table(0, "communication|>threads|>size");
  if (!of_compute) {
    table.column("alone", Align::right);
  }
  for (const std::string& operation : operations) {
    table.column(operation, Align::right);
  }
  for (const auto& [place, times] : computing) {
    std::vector<TableCell> row{"none", count_text(place.second), ""};
    for (const std::string& operation : operations) {
      const auto it = times.find(operation);
      row.emplace_back(it == times.end() ? "" : value_text(it->second));
    }
    table.row(std::move(row));
  }
  for (const auto& [key, cells] : together) {
    std::vector<TableCell> row{traffic_text(key), count_text(key.threads),
                               to_text(Bytes(key.bytes))};
    if (!of_compute) {
      row.emplace_back(value_text(profile.find(key)));
    }
    for (const std::string& operation : operations) {
      const auto it = cells.find(operation);
      const auto factor = it == cells.end() ? factors.end() : factors.find(it->second);
      if (factor != factors.end()) {
        row.emplace_back(factor_text(factor->second),
                         factor->second.shown == false ? Tone::dim : Tone::plain);
      } else {
        row.emplace_back(it == cells.end()         ? ""
                         : it->second->has_value() ? time_text(it->second->p50)
                                                   : missing_text(it->second),
                         Tone::dim);
      }
    }
    table.row(std::move(row));
  }
  const bool brackets = std::any_of(factors.begin(), factors.end(),
                                    [](const auto& f) { return f.second.shown == false; });
  return titled(test,
                of_compute ? ": time of a computation alone, then how many times longer while "
                             "gradients move"
                           : ": time of a communication alone, and how many times longer beside a "
                             "computation",
                style) +
         table.text(style) + (brackets ? "( ) no difference shown: rank test, 5 %\n" : "");
}

} // namespace reckon
