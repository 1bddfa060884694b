// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "equations/torus.hpp"

#include <array>
#include <limits>

/// How an endpoint that computes and communicates at the same time divides what it has: ACE
/// (ISCA'21), sections III, V and VI. Plain doubles: seconds, bytes, operations, and each a second.
/// What is not valid as described throws Error{usage}.
namespace reckon {

/// What of an endpoint is there for computation.
struct ComputeShare {
  double flops_per_s = 0;
  double memory_bytes_per_s = 0;
};
/// Equation 49: the longer of both, for arithmetic and memory work at the same time.
[[nodiscard]] double computation_seconds(double flops, double bytes, const ComputeShare& share);

/// What a computation spends its time on.
enum class ComputationBound { memory, arithmetic };
/// Equation 49 where only its time on `all` of an endpoint is known: how long it takes with
/// `share`. With both bounds these are the extremes, whatever it does.
[[nodiscard]] double stretched_seconds(double seconds, ComputationBound bound,
                                       const ComputeShare& all, const ComputeShare& share);

enum class CollectiveLimit { network, memory, cores, bus };

/// What of an endpoint is there for communication; infinity where nothing limits it.
struct CommunicationShare {
  double memory_bytes_per_s = std::numeric_limits<double>::infinity(); ///< read
  double cores_bytes_per_s = std::numeric_limits<double>::infinity();  ///< read, by all its SMs
  double bus_bytes_per_s = std::numeric_limits<double>::infinity();    ///< to the network
  /// Read from memory: 1.5 without an engine, ACE VI-A; with one, what it loads once.
  double reads_per_byte_sent = 0;
};
struct CollectiveRate {
  double bytes_per_s = 0; ///< that an endpoint sends
  CollectiveLimit limit = CollectiveLimit::network;
};
/// Equation 50; `network_bytes_per_s` is that of equation 44. Of equal limits the first named.
[[nodiscard]] CollectiveRate collective_rate(double network_bytes_per_s,
                                             const CommunicationShare& share);

/// Equation 51: how much longer a byte of payload takes with none before it: through dimension
/// after dimension, instead of behind others at equation 50's rate.
[[nodiscard]] double first_chunk_s(const Torus& torus, const TorusTraffic& traffic,
                                   const CommunicationShare& share);

/// Equation 51: a chunk's latencies. `latency_s`: of a link of each dimension.
[[nodiscard]] double all_reduce_fill_s(const Torus& torus,
                                       const std::array<double, k_torus_dimensions>& latency_s);
[[nodiscard]] double all_to_all_fill_s(const Torus& torus,
                                       const std::array<double, k_torus_dimensions>& latency_s);

} // namespace reckon
