// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/shares/choice.hpp"
#include "strategies/shares/job.hpp"

#include <span>

namespace reckon {

/// The choice's plan but for its prediction: its parts, each with its server and lane, and its
/// ranks; with the choice's window.
[[nodiscard]] Plan cut_and_assign(const SharesJob& job, const Choice& choice, bool by_priority);

/// Time of a scheme if the ranks owned `loads` bytes: the ports' on a network, the bytes' on one
/// machine.
[[nodiscard]] double port_seconds(const SharesJob& job, const Solution& solution,
                                  std::span<const double> loads);

} // namespace reckon
