// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace reckon {

/// Seconds that a link is busy with one write, by the write's bytes. Linear between its points,
/// from 0 s for 0 bytes on, and beyond the last one as between the last two. Immutable.
class BusyCurve {
public:
  BusyCurve() = default;
  /// (bytes, seconds): bytes > 0 and strictly increasing, seconds >= 0 and finite. A time is raised
  /// to the largest time of a smaller size: more bytes never take less. Throws Error{input}
  /// otherwise.
  explicit BusyCurve(std::vector<std::pair<double, double>> points);
  [[nodiscard]] bool empty() const { return m_points.empty(); }
  [[nodiscard]] double seconds(double bytes) const noexcept;
  /// Rate of bytes beyond the last point; infinite where they cost nothing.
  [[nodiscard]] double bytes_per_s() const noexcept;
  [[nodiscard]] std::span<const std::pair<double, double>> points() const { return m_points; }

private:
  std::vector<std::pair<double, double>> m_points;
};

/// [from][to]: the stations that a write passes, in order. Empty between ranks that share memory.
using StationPaths = std::vector<std::vector<std::vector<std::uint32_t>>>;

/// The network between the ranks of a job: a plain table for predictions and emulated transfers. A
/// station serves bytes in order of arrival: a port's egress, a port's ingress, a rack's uplink, or
/// the whole way between two machines. A write passes the stations of its path one after the other
/// without being stored in between (cut-through).
struct StationNetwork {
  std::vector<double> station_bytes_per_s;
  /// [station], or empty: where a station's own curve is not empty it counts and not its rate. A
  /// piece of a write takes its share of the whole write's time.
  std::vector<BusyCurve> station_busy{};
  StationPaths paths;
  /// Where lanes have ways of their own, as over the several ports of a machine: lane i takes way i
  /// modulo their number. Empty: all lanes take `paths`.
  std::vector<StationPaths> lane_paths{};
  double latency_s = 0; ///< of a path, on top of the stations' time
  /// [from][to], or empty: of each path instead of latency_s.
  std::vector<std::vector<double>> path_latency_s{};
  /// Bytes that one connection may have in the first station's queue: longer writes of several
  /// connections go side by side in pieces of this size, shorter ones whole, in the order posted.
  std::uint64_t quantum_bytes = 65536;

  [[nodiscard]] std::size_t ways() const noexcept {
    return std::max<std::size_t>(1, lane_paths.size());
  }
  [[nodiscard]] const std::vector<std::uint32_t>& path(std::size_t lane, std::size_t from,
                                                       std::size_t to) const noexcept {
    return (lane_paths.empty() ? paths : lane_paths[lane % lane_paths.size()])[from][to];
  }
  [[nodiscard]] double latency_of(std::size_t from, std::size_t to) const noexcept {
    return path_latency_s.empty() ? latency_s : path_latency_s[from][to];
  }
  /// Rate of long writes: its own curve's if it has one.
  [[nodiscard]] double rate_of(std::size_t station) const noexcept;
  /// Seconds that the station is busy with `piece_bytes` of a write of `write_bytes`.
  [[nodiscard]] double busy_seconds(std::uint32_t station, double piece_bytes,
                                    double write_bytes) const noexcept;
  /// Seconds of a write without other traffic, from the post to its last byte: the path's latency
  /// and the slowest of its stations.
  [[nodiscard]] double write_seconds(std::size_t from, std::size_t to, double bytes) const noexcept;
};

} // namespace reckon
