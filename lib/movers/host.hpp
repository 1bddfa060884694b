// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/habits.hpp"
#include "movers/mover.hpp"

#include <memory>

namespace reckon {

/// Moves bytes between processes of one machine by copying into the peer's memory.
///
/// A buffer is a memfd, which peers open as /proc/PID/fd/N: nothing has a name in a file system, so
/// nothing is left behind however a process ends. Peers must run under the same user and in the
/// same process-id namespace; connect() throws Error{unavailable} where they do not. The sending
/// thread does the copy; arrival is told through a ring of tags for each (sender, lane), and a
/// receiver that sleeps is woken by a futex. At most 256 ranks and 64 lanes.
[[nodiscard]] std::unique_ptr<Mover> make_host_mover(const Habits& habits = {});

} // namespace reckon
