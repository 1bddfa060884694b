// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace reckon {

/// Makes SIGINT, SIGTERM and SIGHUP (a terminal that is gone; unless it is ignored, as under nohup)
/// set a flag instead of ending the process; a second SIGINT or SIGTERM ends it. SIGPIPE is ignored
/// so that a closed pipe is an error we see.
void install_interrupt_handlers();

/// True once one of these has arrived. Loops end at their next check and keep their results.
[[nodiscard]] bool interrupted() noexcept;

/// For loops without results to keep: throws Error{operation} once interrupted().
void stop_if_interrupted();

/// While this lives its thread gets no signals, and threads that it starts never do: signals of the
/// process go to the owner's other threads. Destroy it in the thread that made it.
class NoSignals {
public:
  NoSignals() noexcept;
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals();

private:
  sigset_t m_before;
};

} // namespace reckon
