// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

/// The traffic of one gradient exchange between machines: BytePS (OSDI'20), sections 2.2 to 4.1,
/// with the corrections that docs/equations.md lists. Plain doubles: bytes, bytes per second,
/// seconds. A quantity with `_s` in its name is in seconds.
namespace reckon {

/// Machines round a switch that never limits them, each behind one full-duplex port. A worker holds
/// a gradient of `model_bytes` and also runs a summation service; a server has the service only.
/// Every gradient byte has one service that receives it from all workers and sends the sum back to
/// all of them. Traffic between a worker and its own service stays inside that machine.
struct Star {
  double model_bytes = 0;
  std::vector<double> worker_bytes_per_s; ///< one a worker, the same in each direction
  std::vector<double> server_bytes_per_s; ///< one a server; may be empty
};

/// The bytes of the model that each service sums. They add up to `model_bytes`.
struct StarShares {
  std::vector<double> worker_bytes;
  std::vector<double> server_bytes;
};

/// What each port carries in one direction (both directions carry the same).
struct StarTraffic {
  std::vector<double> worker_port_bytes;
  std::vector<double> server_port_bytes;
  double time_s = 0; ///< until the last port is done
};

/// The limit of the best split.
enum class StarLimit {
  nothing,         ///< nothing crosses a port: one worker, or no bytes
  slowest_workers, ///< a worker needs this long to send its own gradient, whatever the shares are
  all_ports,       ///< every port is busy all the time: more bandwidth anywhere helps
  servers,         ///< every server's port is busy all the time (a plain parameter server only)
};

/// Shares, their traffic, and the changes that would shorten the time.
struct StarSplit {
  StarShares shares;
  StarTraffic traffic;
  double time_s = 0; ///< the equation's; equal to traffic.time_s except for rounding
  StarLimit limit = StarLimit::nothing;
  /// For slowest_workers: the workers (indexes, rising) that need the whole time. Else empty.
  std::vector<std::size_t> limiting_workers;
  /// Change of the time when all limiting ports (those workers', all, or all servers') become
  /// faster by the same amount, in seconds per (byte per second): negative, or zero where the other
  /// ports limit as well.
  double joint_gain = 0;
  /// The same when only one worker (for slowest_workers: one of the limiting ones) or only one
  /// server becomes faster. Zero when several workers are equally slow: one of them alone changes
  /// nothing.
  double worker_gain = 0;
  double server_gain = 0;
};

/// Equation 5 of docs/equations.md: in each direction worker i, whose service has the share g_i,
/// carries M + (n-2) g_i and server j with the share c_j carries n c_j. For any shares that add up
/// to M, not only the best ones. Throws Error{usage} when the star is not valid (see
/// solve_star_split) or the counts of the shares differ from it.
[[nodiscard]] StarTraffic traffic_of(const Star& star, const StarShares& shares);

/// Equation 8: the least time over all shares, and shares that reach it. Exact, O(n log n + k).
/// When the slowest workers alone set the time, the best shares are not unique; these also make the
/// busiest of the other ports as idle as possible. For two workers every share costs a worker the
/// same; the servers then get as much as they can take within the time, as in equation 6. One
/// worker keeps everything: no traffic. Throws Error{usage} without a worker, for a bandwidth that
/// is not positive and finite, or for bytes that are negative or not finite.
[[nodiscard]] StarSplit solve_star_split(const Star& star);

/// n workers of one bandwidth and k servers of one bandwidth.
struct EqualSplit {
  double worker_share_bytes = 0;
  double server_share_bytes = 0; ///< 0 without servers
  double worker_port_bytes = 0;
  double server_port_bytes = 0; ///< 0 without servers
  double time_s = 0;
  StarLimit limit = StarLimit::nothing;
};

/// Equations 1, 2 and 6 of BytePS (6 and 7 of docs/equations.md) with servers counted as k * server
/// / worker bandwidth (its footnote 4). Beyond n servers counted like this the workers' own ports
/// are the limit: a plain parameter server. Same arguments, errors and results as
/// solve_star_split().
[[nodiscard]] EqualSplit solve_equal_split(std::uint64_t workers, std::uint64_t servers,
                                           double model_bytes, double worker_bytes_per_s,
                                           double server_bytes_per_s);

/// solve_star_split() of a star whose workers have one bandwidth and whose servers have one, with
/// the shares, traffic and time of solve_equal_split(), which are free of rounding: 0 is 0 and
/// equal shares are equal. Throws as these.
[[nodiscard]] StarSplit solve_equal_star(const Star& star);

/// Equation 1: ring all-reduce, 2(n-1)M / (n B). With unequal ports the slowest one sets the pace:
/// min B.
[[nodiscard]] double ring_allreduce_s(double model_bytes,
                                      const std::vector<double>& worker_bytes_per_s);

/// Equation 2: a parameter server on the servers only, max(M / B, n M / (k B)). With unequal ports
/// a server holds a share in proportion to its bandwidth: max(M / min B, n M / sum B). Empty
/// without servers.
[[nodiscard]] std::optional<StarSplit> solve_parameter_server(const Star& star);

/// Equation 3: a parameter server on the workers only, with equal shares, 2(n-1)M / (n B), unequal
/// ports: min B.
[[nodiscard]] StarSplit solve_colocated_parameter_server(const Star& star);

/// Equation 9: the number of equal slots of the model with which every service owns a whole number
/// of them.
struct SlotCounts {
  std::uint64_t total = 0;
  std::uint64_t per_worker = 0;
  std::uint64_t per_server = 0; ///< 0 without servers
};

/// D = n^2 + kn - 2k slots, n - k of them for a worker's service and 2(n-1) for a server's. Empty
/// where the formula has no meaning: n < 2 or k > n; also when D does not fit 64 bits. For equal
/// bandwidths only.
[[nodiscard]] std::optional<SlotCounts> slot_counts(std::uint64_t workers, std::uint64_t servers);

} // namespace reckon
