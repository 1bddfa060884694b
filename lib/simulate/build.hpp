// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/stations.hpp"
#include "schedule/schedule.hpp"
#include "simulate/graph.hpp"
#include "simulate/scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace reckon {

/// The network between a schedule's ranks, and the cost of its ops on it.
struct SimNetwork {
  StationNetwork stations;
  std::vector<std::string> names; ///< by station
  /// Seconds of the first station for every write, beside its bytes.
  double write_overhead_s = 0;
  /// Seconds that a lane of `rank` is busy with a reduce, copy or other local op.
  std::function<double(std::size_t rank, const Op& op)> op_seconds;
  /// By rank, or empty: the number of equal ranks that it plays (fold.hpp).
  std::vector<std::uint64_t> copies{};
  /// [way][from][to][hop], or empty: the number of folded writes that pass that station.
  std::vector<std::vector<std::vector<std::vector<std::uint32_t>>>> flows{};
  /// By part, or empty: the number of the plan's parts that are played as one (coarsen.hpp); its
  /// write takes as long as theirs.
  std::vector<std::uint32_t> merged{};

  [[nodiscard]] double writes_in(const Op& op) const {
    return merged.empty() ? 1 : static_cast<double>(merged[op.part]);
  }
  /// Seconds that a station is busy with `bytes` in this many writes; `first`: of their path.
  [[nodiscard]] double busy_seconds(std::uint32_t station, double bytes, double writes,
                                    bool first) const {
    return writes * (stations.busy_seconds(station, bytes / writes, bytes / writes) +
                     (first ? write_overhead_s : 0));
  }

  [[nodiscard]] std::uint32_t flows_at(std::size_t lane, std::size_t from, std::size_t to,
                                       std::size_t hop) const {
    return flows.empty() ? 1 : flows[lane % flows.size()][from][to][hop];
  }
  /// Seconds of a lane's op; its sources are those of all copies.
  [[nodiscard]] double seconds_of(std::size_t rank, const LaneProgram& lane, std::size_t op) const;
};

/// The schedule for reckon-sim; hosts are ranks, and lanes come rank by rank. A lane's writes have
/// their own ways, where the network has several. Awaits belong to the write of their tag; throws
/// Error{input} for one without.
///
/// A station's rate is that of the longest write over it, with its overhead and, if it has one, by
/// its curve. A shorter write, which has a lower rate, counts as more bytes, so that alone on its
/// path it takes the time of its slowest station.
[[nodiscard]] SimGraph build_graph(const Schedule& schedule, const SimNetwork& network,
                                   const Scenario& scenario = {});

} // namespace reckon
