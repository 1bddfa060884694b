// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The input of reckon-sim: the ops of a schedule as times and amounts, on stations between hosts,
/// without buffers, tags or strategies.
struct SimGraph {
  enum class Kind : std::uint8_t {
    write,   ///< `amount` bytes along path `target`; op `awaited` may go on when they are there
    await,   ///< waits for its write
    compute, ///< keeps its lane for `amount` seconds; a lane computes one op at a time
    delay,   ///< `amount` seconds pass and keep nothing
  };
  struct Op {
    Kind kind = Kind::await;
    std::uint32_t target = 0;  ///< write: path
    std::uint32_t awaited = 0; ///< write: op
    double amount = 0;         ///< >= 0
  };
  /// A write crosses hops. It begins with the next hop as soon as it has begun with one and the
  /// connection's earlier writes are through there, so data wait in the network before a slow hop.
  /// It is on all stations of a hop at once; a station that is there twice carries each byte twice.
  /// No hops: the hosts share memory, and only the latency counts.
  struct Path {
    std::uint32_t from = 0, to = 0;               ///< hosts; several ports are several paths
    double latency_s = 0;                         ///< from the last byte's departure to its arrival
    std::vector<std::vector<std::uint32_t>> hops; ///< [hop]: stations, at least one
  };
  /// Traffic beside the plan's: takes its fair share of all the path's stations at once, at most
  /// its rate, from `start_s` until the end.
  struct Background {
    std::uint32_t path = 0;
    double bytes_per_s = 0, start_s = 0;
  };

  std::uint32_t hosts = 0;
  bool simgrid = false;      ///< SimGrid plays it, also where equal shares could (equal_shares.hpp)
  double precision_s = 1e-9; ///< times within it end at once
  std::vector<double> station_bytes_per_s;
  std::vector<Path> paths;
  std::vector<Background> backgrounds;
  /// Ops of a lane are neighbours. Writes of a lane along one path are a connection: they cross
  /// each hop one after another, in the order in which they become ready.
  std::vector<std::uint32_t> lane_begin{0};
  std::vector<Op> ops;
  std::vector<std::size_t> dependency_begin{0}; ///< [op]
  std::vector<std::uint32_t> dependencies;      ///< earlier ops of the same lane

  [[nodiscard]] std::size_t lanes() const { return lane_begin.size() - 1; }
  void append(const Op& op, std::span<const std::uint32_t> depends_on);
  void end_lane() { lane_begin.push_back(static_cast<std::uint32_t>(ops.size())); }
  [[nodiscard]] std::span<const std::uint32_t> dependencies_of(std::size_t op) const {
    return std::span<const std::uint32_t>(dependencies)
        .subspan(dependency_begin[op], dependency_begin[op + 1] - dependency_begin[op]);
  }
};

/// Its text in pieces (docs/simulate-format.md), the input of reckon-sim.
void write_graph(const SimGraph& graph, const std::function<void(std::string_view)>& put);

/// Reads that text. Throws Error{input} with the line and what is wrong with it.
[[nodiscard]] SimGraph read_graph(const std::function<std::size_t(char*, std::size_t)>& get);

} // namespace reckon
