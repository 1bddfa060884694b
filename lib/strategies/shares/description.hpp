// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/shares/job.hpp"
#include "strategies/strategy.hpp"

namespace reckon {

/// Writes into a plan with its candidates and runner-up what it was made from, what was asked for,
/// the quantities behind it, the places of its lanes, and the margin to the runner-up. `solution`:
/// the plan's.
void describe(Plan& plan, const SharesJob& job, const Solution& solution);

} // namespace reckon
