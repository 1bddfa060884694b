// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "equations/torus.hpp"

#include <array>
#include <limits>

/// How an endpoint that computes and communicates at the same time divides its resources: ACE
/// (ISCA'21), sections III, V and VI. Plain doubles: seconds, bytes, operations, and rates of
/// these. Invalid arguments throw Error{usage}.
namespace reckon {

/// The resources of an endpoint for computation.
struct ComputeShare {
  double flops_per_s = 0;
  double memory_bytes_per_s = 0;
};
/// Equation 49: the longer of both, for arithmetic and memory work at the same time.
[[nodiscard]] double computation_seconds(double flops, double bytes, const ComputeShare& share);

/// The limit of a computation.
enum class ComputationBound { memory, arithmetic };
/// Equation 49 where only the time on `all` of an endpoint is known: the time with `share`. With
/// both limits these are the extremes of any computation.
[[nodiscard]] double stretched_seconds(double seconds, ComputationBound bound,
                                       const ComputeShare& all, const ComputeShare& share);

enum class CollectiveLimit { network, memory, cores, bus };

/// The resources of an endpoint for communication; infinity without a limit.
struct CommunicationShare {
  double memory_bytes_per_s = std::numeric_limits<double>::infinity(); ///< read
  double cores_bytes_per_s = std::numeric_limits<double>::infinity();  ///< read, by all its SMs
  double bus_bytes_per_s = std::numeric_limits<double>::infinity();    ///< to the network
  /// Bytes read from memory for each byte sent: 1.5 without an engine, ACE VI-A; with one, the
  /// bytes that it loads once.
  double reads_per_byte_sent = 0;
};
struct CollectiveRate {
  double bytes_per_s = 0; ///< rate at which an endpoint sends
  CollectiveLimit limit = CollectiveLimit::network;
};
/// Equation 50; `network_bytes_per_s` is that of equation 44. Of equal limits the first in the
/// order above.
[[nodiscard]] CollectiveRate collective_rate(double network_bytes_per_s,
                                             const CommunicationShare& share);

/// Equation 51: the additional time of a byte of payload with none before it, which passes
/// dimension after dimension, against one behind others at equation 50's rate.
[[nodiscard]] double first_chunk_s(const Torus& torus, const TorusTraffic& traffic,
                                   const CommunicationShare& share);

/// Equation 51: a chunk's latencies. `latency_s`: of a link of each dimension.
[[nodiscard]] double all_reduce_fill_s(const Torus& torus,
                                       const std::array<double, k_torus_dimensions>& latency_s);
[[nodiscard]] double all_to_all_fill_s(const Torus& torus,
                                       const std::array<double, k_torus_dimensions>& latency_s);

} // namespace reckon
