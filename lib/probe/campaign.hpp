// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "core/error.hpp"
#include "documents/profile.hpp"
#include "probe/guard.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// One cell that is to be measured.
struct CellPlan {
  CellKey key{};
  Seconds visit{0.02}; ///< what one of its measurements takes
  /// Fills samples (fill_cell) within about `budget`; key, unit and convention are set. May set
  /// another status with a reason. An Error makes the cell failed, or unsupported if it is
  /// Error{unavailable}.
  std::function<void(Cell& cell, Seconds budget)> measure{};
};

/// The cell before it is measured: of the plan's key, with the unit and the convention of its case.
[[nodiscard]] Cell empty_cell(const CellPlan& plan);

/// Of a cell that could not be measured because of that.
[[nodiscard]] CellStatus status_of(const Error& error);

/// A group of cells that share what they need.
struct Campaign {
  std::string name{};
  std::vector<CellPlan> plans{};
  /// Called before the first and after the last cell of each pass. May be empty.
  std::function<void()> begin{}, end{};
  bool once = false; ///< one visit a pass: begin measures
  bool last = false; ///< to be measured after all that plans are made from
};

/// What the measurements of one cell, in the order made, come to: of those with a value the faster
/// half (of three the best two), whose samples count together. Others' work only ever slows one
/// down, so that these are what a quiet machine gives as long as it was quiet half of the time. The
/// cell is noisy when the medians of those that count differ by more than a tenth, when their
/// samples vary by more than a tenth (median absolute deviation), or when there are fewer than
/// five. Keeps at most `keep` samples. `visits` is not empty; without any value the last one is
/// returned.
[[nodiscard]] Cell merged(std::span<const Cell> visits, std::size_t keep);

/// A run goes through all campaigns so often, and visits each cell so often each time.
inline constexpr int k_passes = 3, k_visits = 2;

struct RunnerOptions {
  /// Less time than all visits take makes them shorter, then fewer, in all campaigns alike; more
  /// makes more of them.
  std::optional<Seconds> budget;
  std::uint64_t seed = 1;
  std::function<bool()> interrupted;
  /// `done` in [0, 1].
  std::function<void(double done, std::string_view what, Seconds left)> progress;
};

struct RunResult {
  std::vector<Cell> cells; ///< every cell of every campaign, whatever became of it
  /// Median over the cells of how much slower the last pass was than the first: -0.1 is a tenth
  /// faster. Absent with less than three cells in both.
  std::optional<double> drift;
  std::string disturbance; ///< what others did meanwhile (Guard::end)
  std::vector<std::string> warnings;
  bool interrupted = false;
  Seconds took{0};
  [[nodiscard]] std::size_t count(CellStatus status) const;
};

/// What all visits of the campaigns take, within `budget` if there is one.
[[nodiscard]] Seconds estimate(const std::vector<Campaign>& campaigns,
                               std::optional<Seconds> budget);

/// Measures all cells, each in k_passes * k_visits visits that are spread over the run, in an order
/// drawn from the seed (measuring.md rule 18), and merges them. Of a budget, each campaign gets a
/// part in proportion to what its visits are planned to take; what it leaves goes to those that
/// follow, and however short it is, one of its cells is visited unless the whole budget is used up.
/// What there is no time for is skipped with the reason. A cell that fails is not visited again and
/// never stops the others (rule 22). An interrupt ends the measuring; what was visited until then
/// counts.
[[nodiscard]] RunResult run_campaigns(const std::vector<Campaign>& campaigns,
                                      const RunnerOptions& options, const Clock& clock,
                                      Guard& guard);

} // namespace reckon
