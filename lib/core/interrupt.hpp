// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reckon {

/// Makes SIGINT and SIGTERM set a flag instead of ending the process; a second signal ends it.
/// SIGPIPE is ignored so that a closed pipe is an error we see.
void install_interrupt_handlers();

/// True once SIGINT or SIGTERM has arrived. Loops end at their next check and keep what they have.
[[nodiscard]] bool interrupted() noexcept;

/// For loops that have nothing worth keeping: throws Error{operation} once interrupted().
void stop_if_interrupted();

} // namespace reckon
