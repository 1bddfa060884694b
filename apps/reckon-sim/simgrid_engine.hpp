// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulate/player.hpp"

#include <map>
#include <memory>
#include <string>

namespace reckon {

/// The graph's stations as links of SimGrid, max-min fair, each way by itself: a flow alone on its
/// path takes exactly bytes / the slowest station's rate. At most one in a process. SimGrid ends
/// the process, with words on standard error, when it finds a mistake.
[[nodiscard]] std::unique_ptr<FlowEngine> make_simgrid_engine(const SimGraph& graph);

/// "SimGrid 3.32.0", and the settings that the results depend on.
[[nodiscard]] std::string simgrid_version();
[[nodiscard]] std::map<std::string, std::string> simgrid_settings(const SimGraph& graph);

} // namespace reckon
