// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "documents/profile.hpp"
#include "probe/guard.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// One cell that is to be measured.
struct CellPlan {
  CellKey key{};
  Seconds least{0.02};    ///< with less time it is not worth starting
  Seconds wanted{0.25};   ///< what it takes when there is enough time
  int rank = 0;           ///< when time is short, the lower ones are measured
  bool crowded = false;   ///< its threads have to share processors: their waiting disturbs nothing
  bool reference = false; ///< fit to be measured again at the end, to see drift
  /// Fills samples (fill_cell) within about `budget`; key, unit and convention are set. May set
  /// another status with a reason. An Error makes the cell failed, or unsupported if it is
  /// Error{unavailable}.
  std::function<void(Cell& cell, Seconds budget)> measure{};
};

/// The cell before it is measured: of the plan's key, with the unit and the convention of its case.
[[nodiscard]] Cell empty_cell(const CellPlan& plan);

/// A group of cells that share what they need, measured one after another in random order.
struct Campaign {
  std::string name{};
  double share = 1; ///< of the time, relative to the other campaigns
  /// The cells; called again when the campaign's turn has come, as they may depend on what was
  /// measured before. Cheap, without side effects.
  std::function<std::vector<CellPlan>()> plan{};
  /// More cells after those have been measured: refinement. Called until it returns none or the
  /// campaign's time is over. May be empty.
  std::function<std::vector<CellPlan>(const std::vector<Cell>& measured)> more{};
  /// Called before the first and after the last cell. May be empty.
  std::function<void()> begin{}, end{};
};

struct RunnerOptions {
  Seconds budget{30};
  std::uint64_t seed = 1;
  std::function<bool()> interrupted;
  /// `done` in [0, 1].
  std::function<void(double done, std::string_view what, Seconds left)> progress;
  /// At most, before each campaign, and a twentieth of the budget in all.
  Seconds wait_for_quiet{0.5};
};

/// How the reference cell changed between its first measurement and the end.
struct Drift {
  CellKey key;
  double first = 0, last = 0; ///< medians
  [[nodiscard]] double relative() const { return last / first - 1; }
};

struct RunResult {
  std::vector<Cell> cells; ///< every cell of every campaign, whatever became of it
  std::optional<Drift> drift;
  std::vector<std::string> warnings;
  bool interrupted = false;
  Seconds took{0};
  [[nodiscard]] std::size_t count(CellStatus status) const;
};

/// Seconds that all cells would like, bounded by `budget`: the estimate given before the start.
[[nodiscard]] Seconds estimate(const std::vector<Campaign>& campaigns, Seconds budget);

/// Measures all campaigns within the budget. The time goes to the campaigns by their shares; what
/// one leaves over goes to the next. Within one, the cells of lowest rank that fit are measured, in
/// an order drawn from the seed (measuring.md rule 18), each with a fair part of the time; the rest
/// is skipped with the reason. A cell that fails never stops the others (rule 22). An interrupt
/// ends the measuring and marks what is left. A cell disturbed by others' work is noisy (rule 16).
[[nodiscard]] RunResult run_campaigns(const std::vector<Campaign>& campaigns,
                                      const RunnerOptions& options, const Clock& clock,
                                      Guard& guard);

} // namespace reckon
