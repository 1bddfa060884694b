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

/// Who moves and sums what is communicated.
enum class EndpointMover {
  cores,  ///< its SMs, everything through memory between two steps
  engine, ///< one with a buffer of its own, which loads each byte once
  none,   ///< takes nothing of the endpoint: the ideal
};
[[nodiscard]] std::string_view name_of(EndpointMover mover);

/// What of an endpoint communication, or a computation beside the others, has for itself.
struct EndpointPart {
  double sms = 0;
  double memory_bytes_per_second = 0;
  bool operator==(const EndpointPart&) const = default;
};

/// How an endpoint is divided between computation and communication.
struct EndpointConfiguration {
  std::string name;
  std::string source;
  EndpointMover mover = EndpointMover::cores;
  /// What communication has, computation has the rest; absent: each has all while the other waits,
  /// and an iteration communicates at its end.
  std::optional<EndpointPart> communication;
  bool operator==(const EndpointConfiguration&) const = default;
};

/// A ring of equal links: what a node sends over both, and how long one takes.
struct EndpointRing {
  double bytes_per_second = 0;
  double latency_seconds = 0;
  bool operator==(const EndpointRing&) const = default;
};

/// A machine that computes and communicates at the same time, as one node of a torus (ACE).
struct Endpoint {
  std::uint64_t sms = 0;
  double sm_bytes_per_second = 0; ///< what one reads or writes
  double flops_per_second = 0;    ///< of all SMs
  double memory_bytes_per_second = 0;
  double bus_bytes_per_second = 0;     ///< to the network
  std::array<EndpointRing, 3> rings{}; ///< local, vertical, horizontal
  double link_efficiency = 1;          ///< of bytes_per_second
  std::uint64_t chunk_bytes = 0;       ///< what nothing interrupts
  /// For what is computed an iteration ahead, beside the other layers; absent: nothing is.
  std::optional<EndpointPart> aside;
  std::vector<EndpointConfiguration> configurations; ///< at least one
  std::map<std::string, std::string> sources;        ///< by key: where a figure is from
  bool operator==(const Endpoint&) const = default;
};

} // namespace reckon
