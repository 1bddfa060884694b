// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulate/graph.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace reckon {

/// The result of reckon-sim.
struct SimResult {
  std::string engine;                          ///< "SimGrid 3.32.0", "equal shares"
  std::map<std::string, std::string> settings; ///< of the engine
  std::vector<double> lane_seconds;            ///< when each lane's last op was done
  double seconds = 0;
  std::uint64_t flows = 0, most_flows = 0; ///< in total, and under way at once
  std::vector<double> background_bytes;    ///< bytes that each background carried
  double cpu_seconds = 0;                  ///< of the simulator itself
  std::uint64_t peak_bytes = 0;            ///< of its memory
};

/// reckon-sim beside this program. Throws Error{unavailable} that says how to get it.
[[nodiscard]] std::string find_simulator();

/// Plays the graph in a process of its own, which never outlives the call: it is killed when this
/// one dies, is interrupted or throws. `progress` is told how many ops are done. Throws
/// Error{operation} when the simulator ends without a result, with its own words, and its own error
/// if it has one.
[[nodiscard]] SimResult simulate(const SimGraph& graph, const std::string& program,
                                 const std::function<void(std::uint64_t done)>& progress);

} // namespace reckon
