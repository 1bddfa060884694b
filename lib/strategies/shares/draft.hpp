// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/shares/choice.hpp"
#include "strategies/shares/job.hpp"

namespace reckon {

/// The choice's plan but for its prediction: its parts in the order asked for, each with its server
/// and lane, and its ranks; with the choice's window.
[[nodiscard]] Plan cut_and_assign(const SharesJob& job, const Choice& choice);

/// A plan of cut_and_assign() with a window, and how it is predicted to run.
[[nodiscard]] Plan predicted(const SharesJob& job, const Choice& choice, const Plan& assigned,
                             double window);

} // namespace reckon
