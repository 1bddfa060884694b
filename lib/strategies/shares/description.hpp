// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/shares/choice.hpp"
#include "strategies/shares/job.hpp"

namespace reckon {

/// Writes into a plan its sources, the given options, the quantities behind it and the places of
/// its lanes. `choice`: the plan's.
void describe(Plan& plan, const SharesJob& job, const Choice& choice);

/// Finds the runner-up among the candidates of a plan, and describes the margin to it.
void add_margin(Plan& plan, bool asked_for);

} // namespace reckon
