// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/shares/choice.hpp"
#include "strategies/shares/job.hpp"

namespace reckon {

/// Writes into a plan what it was made from, what was asked for, the quantities behind it and the
/// places of its lanes. `choice`: the plan's.
void describe(Plan& plan, const SharesJob& job, const Choice& choice);

/// Finds the runner-up among the candidates of a plan, and what the margin to it means.
void add_margin(Plan& plan, bool asked_for);

} // namespace reckon
