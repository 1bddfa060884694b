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

/// One cell to measure.
struct CellPlan {
  CellKey key{};
  Seconds visit{0.02}; ///< time of one of its measurements
  Seconds first{0};    ///< what the first of them takes more, to find how it is best done
  /// Fills samples (fill_cell) within about `budget`; key, unit and convention are set. May set
  /// another status with a reason. An Error makes the cell failed, or unsupported if it is
  /// Error{unavailable}.
  std::function<void(Cell& cell, Seconds budget)> measure{};
};

/// The cell before it is measured: of the plan's key, with the unit and the convention of its case.
[[nodiscard]] Cell empty_cell(const CellPlan& plan);

/// For a cell that could not be measured for this reason.
[[nodiscard]] CellStatus status_of(const Error& error);

/// Of the time of a probe, what visits may take; the rest goes into what campaigns prepare.
inline constexpr double k_visits_share = 0.6;
/// Number of passes through all campaigns, and of visits of each cell in a pass.
inline constexpr int k_passes = 2, k_visits = 2;

/// A group of cells with shared resources.
struct Campaign {
  std::string name{};
  std::vector<CellPlan> plans{};
  /// Called before the first and after the last cell of each pass. May be empty.
  std::function<void()> begin{}, end{};
  bool once = false;     ///< one visit a pass: begin measures
  bool last = false;     ///< to be measured after all cells that plans are made from
  int passes = k_passes; ///< that it is in, from the first on
  /// All visits count: what usually happens is asked, not what the machine can do.
  bool typical = false;
};

/// Merges the measurements of one cell, in their order: the faster half of those with a value (of
/// three the best two), whose samples count together. Other programs can only slow a measurement
/// down, so these are a quiet machine's values if it was quiet half of the time. The cell is noisy
/// when the counted medians differ by more than a tenth, when the samples vary by more than a tenth
/// (median absolute deviation), or when there are fewer than five. Keeps at most `keep` samples.
/// `typical`: all with a value count, and may be few. `visits` is not empty; without any value the
/// last one is returned.
[[nodiscard]] Cell merged(std::span<const Cell> visits, std::size_t keep, bool typical = false);

struct RunnerOptions {
  /// Less time than all visits take makes them shorter, then fewer, in all campaigns alike; more
  /// time adds visits.
  std::optional<Seconds> budget;
  std::uint64_t seed = 1;
  std::function<bool()> interrupted;
  /// `done` in [0, 1].
  std::function<void(double done, std::string_view what, Seconds left)> progress;
  /// The errors that the system counted since the last call; empty: none. Asked before the first
  /// and after each visit, and told of with the cell.
  std::function<std::string()> errors{};
};

struct RunResult {
  std::vector<Cell> cells; ///< every cell of every campaign, with any outcome
  /// Median over the cells of the last pass's slow-down against the first: -0.1 is a tenth faster.
  /// Absent with less than three cells in both.
  std::optional<double> drift;
  std::string disturbance; ///< activity of other programs meanwhile (Guard::end)
  std::vector<std::string> warnings;
  bool interrupted = false;
  Seconds took{0};
  [[nodiscard]] std::size_t count(CellStatus status) const;
};

/// The time of all visits of the campaigns, within `budget` if there is one.
[[nodiscard]] Seconds estimate(const std::vector<Campaign>& campaigns,
                               std::optional<Seconds> budget);

/// Measures all cells, each in k_passes * k_visits visits that are spread over the run, in an order
/// drawn from the seed, and merges them. Each campaign gets a part of a budget in proportion to the
/// planned time of its visits; unused time goes to the following campaigns. Even with little time
/// one cell of each campaign is visited unless the whole budget is used up. Cells without time are
/// skipped with the reason. A cell that fails is not visited again and never stops the others. An
/// interrupt ends the measuring; the visits until then count.
[[nodiscard]] RunResult run_campaigns(const std::vector<Campaign>& campaigns,
                                      const RunnerOptions& options, const Clock& clock,
                                      Guard& guard);

} // namespace reckon
