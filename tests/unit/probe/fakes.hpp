// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "probe/campaign.hpp"
#include "probe/guard.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace reckon::test {

/// Stands still until it is told to go on.
class FakeClock final : public Clock {
public:
  [[nodiscard]] Seconds now() const noexcept override { return m_now; }
  void advance(Seconds by) { m_now += by; }

private:
  Seconds m_now{100}; // not 0: a start that is taken for granted shows
};

/// Adds an object to a tree.
inline TopologyObject& add(Topology& tree, std::string id, ObjectKind kind, std::string parent) {
  TopologyObject& object = tree.objects.emplace_back();
  object.id = std::move(id);
  object.kind = kind;
  object.parent = std::move(parent);
  return object;
}

/// A cell with these samples; the unit is its case's.
inline Cell cell_with(const CellKey& key, std::vector<double> samples) {
  Cell cell = empty_cell({.key = key});
  cell.samples = std::move(samples);
  summarize_cell(cell);
  return cell;
}

/// What becomes of a cell that is measured by itself.
inline Cell measured(const CellPlan& plan, Seconds budget) {
  Cell cell = empty_cell(plan);
  plan.measure(cell, budget);
  return cell;
}

/// Says what it was told to say.
class FakeGuard final : public Guard {
public:
  void begin() override {}
  [[nodiscard]] std::string end() override { return disturbance; }
  std::string disturbance;
};

} // namespace reckon::test
