// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "documents/report.hpp"
#include "export/export.hpp"
#include "present/matrix.hpp"

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

// Pictures of a page, as HTML or SVG.

/// A matrix of at most 24 columns as a table, each cell with its value and its part of the ceiling,
/// a larger one as colours alone, neighbours of one colour together. Cells without a ceiling are
/// measured by the best one. The colours begin at nothing, so that equal ones look equal. `odd`:
/// places, "m0/gpu1" or "m0/gpu1 -> m0/gpu2", whose cells are marked.
[[nodiscard]] std::string heat_map(const Matrix& matrix, const std::set<std::string>& odd);

/// Curves of one case over size, with fits and knees; of many the slowest and the fastest stand
/// out.
[[nodiscard]] std::string curve_chart(const Profile& profile,
                                      const std::vector<std::vector<const Cell*>>& curves);

/// The iterations of a run one after another, with the prediction's range and the bound.
[[nodiscard]] std::string iterations_chart(const Report& report);

/// A row of bars below each other: what they are of, how long (0 to 1) and of which look ("",
/// "second" or "full"), and what stands beside them.
struct BarRow {
  std::string name;
  bool strong = false;
  std::vector<std::pair<double, std::string_view>> bars;
  std::vector<std::string> numbers; ///< plain text
  std::string remark{};             ///< HTML
};
/// As a table; `heads`: of the name, of each number, and of the remarks if there are any.
[[nodiscard]] std::string bar_table(const std::vector<std::string>& heads,
                                    const std::vector<BarRow>& rows);

/// What the colours of a picture mean: the template's class of each, and plain text.
[[nodiscard]] std::string legend(const std::vector<std::pair<std::string, std::string>>& keys);

/// What each lane does when, of each timeline a row for each of the first lanes, all on one axis.
[[nodiscard]] std::string timeline_chart(const Schedule& schedule,
                                         std::span<const NamedTimeline> timelines);

} // namespace reckon
