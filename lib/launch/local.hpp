// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/rendezvous.hpp"

#include <functional>
#include <string>

namespace reckon {

/// Starts `ranks` processes of this program on this machine and waits for all of them. Each runs
/// `body(job, listener, progress)` with its rank (the listener is rank 0's) and ends; what rank 0's
/// body returns comes back. `progress` lines of rank 0 reach `on_progress` here as "text".
///
/// No process outlives the call, whatever happens: they die with their parent, and are killed when
/// one of them failed and the others do not follow within some seconds. When several fail, the
/// error thrown is the one that started it: a signal, else a rank's own trouble, else a PeerError.
[[nodiscard]] std::string run_locally(
    int ranks,
    const std::function<std::string(const JobEnvironment& job, Fd listener,
                                    const std::function<void(const std::string&)>& progress)>& body,
    const std::function<void(const std::string&)>& on_progress);

} // namespace reckon
