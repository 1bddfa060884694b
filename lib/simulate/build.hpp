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

/// Where a schedule is played: what lies between its ranks, and what its ops cost there.
struct SimNetwork {
  StationNetwork stations;
  std::vector<std::string> names; ///< by station
  /// Seconds of the first station that every write costs beside its bytes.
  double write_overhead_s = 0;
  /// Seconds that a lane of `rank` is busy with a reduce, copy or other local op.
  std::function<double(std::size_t rank, const Op& op)> op_seconds;
  /// By rank, or empty: so many ranks that do the same are played by it (fold.hpp).
  std::vector<std::uint64_t> copies{};
  /// [way][from][to][hop], or empty: so many of the writes that one stands for pass that station.
  std::vector<std::vector<std::vector<std::vector<std::uint32_t>>>> flows{};
  /// By part, or empty: so many of the plan's parts are played as one (coarsen.hpp), and a write of
  /// it takes as long as theirs.
  std::vector<std::uint32_t> merged{};

  [[nodiscard]] double writes_in(const Op& op) const {
    return merged.empty() ? 1 : static_cast<double>(merged[op.part]);
  }
  /// Seconds that a station is busy with `bytes` in so many writes; `first`: of their path.
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

/// The schedule as reckon-sim plays it; hosts are ranks, and lanes come rank by rank. A lane's
/// writes have its own ways, where the network has several. Awaits belong to the write of their
/// tag; throws Error{input} for one without.
///
/// A station's rate is that of the longest write over it, with its overhead and, where it has one,
/// by its curve. A shorter write, which has a lower rate, counts as so many more bytes that alone
/// on its path it takes the time of its slowest station.
[[nodiscard]] SimGraph build_graph(const Schedule& schedule, const SimNetwork& network,
                                   const Scenario& scenario = {});

} // namespace reckon
