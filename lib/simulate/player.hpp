// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulate/graph.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace reckon {

/// A network whose flows share its stations, and its clock. Its reports may start more flows.
class FlowEngine {
public:
  FlowEngine() = default;
  FlowEngine(const FlowEngine&) = delete;
  FlowEngine& operator=(const FlowEngine&) = delete;
  virtual ~FlowEngine() = default;
  /// Is told of each flow's end, and of the time of a requested call.
  struct Listener {
    std::function<void(std::uint32_t flow)> flow_ended;
    std::function<void()> called;
  };
  /// Starts `flow` with this many bytes, more than 0, over a hop of a path. The caller numbers the
  /// flows; an ended one's number may be used again.
  virtual void start_flow(std::uint32_t flow, std::uint32_t path, std::uint32_t hop,
                          double bytes) = 0;
  /// Starts background traffic of the graph, which goes on until the end.
  virtual void start_background(std::uint32_t background) = 0;
  /// The bytes that it has carried until now.
  [[nodiscard]] virtual double background_bytes(std::uint32_t background) const = 0;
  /// Requests a call at that time, or just after it; not before now.
  virtual void call_at(double seconds) = 0;
  [[nodiscard]] virtual double now() const = 0;
  /// Runs until no flow and no call is left, or stop() was called.
  virtual void run(Listener listener) = 0;
  virtual void stop() = 0;
};

struct PlayedGraph {
  std::vector<double> lane_seconds; ///< when each lane's last op was done
  double seconds = 0;
  std::uint64_t flows = 0;              ///< writes
  std::uint64_t most_flows = 0;         ///< under way at once
  std::vector<double> background_bytes; ///< bytes that each carried until all ops were done
};

/// Plays the graph on an engine with its stations and paths. The rules are those of the executor
/// and of the planner's play(): a lane computes one op at a time, the earliest ready one; awaits
/// and writes keep no lane; a connection (a lane and a path) sends one write after another over
/// each hop; a write is done at its sender when its last byte has crossed the first hop, and
/// arrives its path's latency after it has crossed all. `progress` is told now and then how many
/// ops are done. Throws Error{input} that names a lane when the graph comes to a halt.
[[nodiscard]] PlayedGraph play_graph(const SimGraph& graph, FlowEngine& engine,
                                     const std::function<void(std::uint64_t done)>& progress);

} // namespace reckon
