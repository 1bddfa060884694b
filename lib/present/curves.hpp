// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "present/groups.hpp"

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace reckon {

// What a picture of a curve shows: GB/s, or for cases that move nothing the time in ns.

[[nodiscard]] bool shows_time(const Cell& cell);
/// The median; absent without a value.
[[nodiscard]] std::optional<double> plotted(const Cell& cell);
/// Bytes, median, slow and fast end of the cells that have a value.
using CurveRow = std::tuple<double, double, double, double>;
[[nodiscard]] std::vector<CurveRow> curve_rows(const Cells& curve);

/// The fit over the cells that agree with `key` in everything but bytes; nullptr: none.
[[nodiscard]] const Fit* fit_for(const Profile& profile, CellKey key);
/// A fit's segment from its first size to its last: bytes and GB/s.
[[nodiscard]] std::vector<std::pair<double, double>> fit_rows(const FitSegment& segment);

} // namespace reckon
