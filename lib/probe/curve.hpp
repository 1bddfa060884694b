// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/workbench.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace reckon {

/// How long memcpy takes for 8 B to 256 MiB: one thread, on its own node, back to back. "warm": the
/// same source and destination again and again; "cold": another place each time, until all caches
/// have been overwritten. Powers of two, then more sizes where the slope changes (measuring.md rule
/// 19).
[[nodiscard]] Campaign memcpy_curve_campaign(Workbench& bench);

/// A measured size.
struct CurveSample {
  double seconds = 0; ///< median
  double spread = 0;  ///< median absolute deviation / median
};

/// Sizes to measure next, most telling first: between the sizes around one whose time is off the
/// straight line between its neighbours by more than a tenth and by more than its noise explains.
/// Multiples of 64 B (of 8 B below), each at least an eighth of an octave from what is measured.
/// Empty when time is piecewise linear in size already, with breaks located that well.
[[nodiscard]] std::vector<std::uint64_t>
refine_sizes(const std::map<std::uint64_t, CurveSample>& measured);

/// Every fourth power of two first, then every second: a curve with few points is a curve.
[[nodiscard]] int curve_rank(std::uint64_t size);

/// Adds plans for the sizes that refine_sizes() wants of the curve of those measured cells whose
/// keys differ from plan_for()'s in the size only.
void add_refined(std::vector<CellPlan>& plans, const std::vector<Cell>& measured,
                 const std::function<CellPlan(std::uint64_t bytes)>& plan_for);

} // namespace reckon
