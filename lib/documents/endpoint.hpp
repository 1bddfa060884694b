// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The mover of communicated data, which also sums them.
enum class EndpointMover {
  cores,  ///< its SMs, everything through memory between two steps
  engine, ///< an engine with its own buffer, which loads each byte once
  none,   ///< uses no resources of the endpoint: the ideal
};
[[nodiscard]] std::string_view name_of(EndpointMover mover);

/// The resources of an endpoint for communication, or for computations beside the others.
struct EndpointPart {
  double sms = 0;
  double memory_bytes_per_second = 0;
  bool operator==(const EndpointPart&) const = default;
};

/// A division of an endpoint between computation and communication.
struct EndpointConfiguration {
  std::string name;
  std::string source;
  EndpointMover mover = EndpointMover::cores;
  /// Resources of communication, computation has the rest; absent: each has all while the other
  /// waits, and an iteration communicates at its end.
  std::optional<EndpointPart> communication;
  bool operator==(const EndpointConfiguration&) const = default;
};

/// A ring of equal links: send rate of a node over both links, and latency of one.
struct EndpointRing {
  double bytes_per_second = 0;
  double latency_seconds = 0;
  bool operator==(const EndpointRing&) const = default;
};

/// A machine that computes and communicates at the same time, as one node of a torus (ACE).
struct Endpoint {
  std::uint64_t sms = 0;
  double sm_bytes_per_second = 0; ///< read or write rate of one SM
  double flops_per_second = 0;    ///< of all SMs
  double memory_bytes_per_second = 0;
  double bus_bytes_per_second = 0;     ///< to the network
  std::array<EndpointRing, 3> rings{}; ///< local, vertical, horizontal
  double link_efficiency = 1;          ///< of bytes_per_second
  std::uint64_t chunk_bytes = 0;       ///< piece that nothing interrupts
  /// For computations one iteration ahead, beside the other layers; absent: no such resources.
  std::optional<EndpointPart> aside;
  std::vector<EndpointConfiguration> configurations; ///< at least one
  std::map<std::string, std::string> sources;        ///< by key: source of a figure
  bool operator==(const Endpoint&) const = default;
};

} // namespace reckon
