// SPDX-License-Identifier: Apache-2.0
#include "documents/contention.hpp"

#include "stats/rank_test.hpp"

namespace reckon {

bool is_contention(const CellKey& key) {
  return key.test == k_contention_communication || key.test == k_contention_compute;
}

std::optional<CellKey> alone(const CellKey& key) {
  CellKey twin = key;
  if (key.test == k_contention_communication) {
    twin.operation.clear();
  } else if (key.test == k_contention_compute) {
    twin = {};
    twin.test = key.test;
    twin.from = key.from;
    twin.threads = key.threads;
    twin.operation = key.operation;
  }
  return twin == key ? std::nullopt : std::optional(twin);
}

std::vector<Contention> contention_of(const Profile& profile, std::string_view test) {
  constexpr double k_alpha = 0.05;
  std::vector<Contention> found;
  for (const Cell& cell : profile.cells) {
    const std::optional<CellKey> twin = alone(cell.key);
    if (cell.key.test != test || !is_contention(cell.key) || !cell.has_value() || !twin) {
      continue;
    }
    const Cell* const solo = profile.find(*twin);
    if (solo == nullptr || !solo->has_value()) {
      continue;
    }
    Contention c{&cell, solo, cell.p50 / solo->p50, std::nullopt};
    if (const auto p = rank_test(cell.samples, solo->samples, k_alpha)) {
      c.shown = *p < k_alpha;
    }
    found.push_back(c);
  }
  return found;
}

} // namespace reckon
