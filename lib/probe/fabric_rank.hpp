// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/mover.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace reckon {

/// What one rank of a FabricCrew is to do, told by the process that measures. Goes through a socket
/// between two forks of one program, so it is plain memory.
struct FabricOrder {
  enum class Kind : std::uint32_t {
    stream, ///< move `count` writes, in_flight at a time, one place after the other
    ping,   ///< exchange 8-byte writes with the peer, one at a time, warm_up + count times
  };
  Kind kind = Kind::stream;
  int peer = 0;
  int cpu = -1;           ///< processor to run on; -1: leave it to the scheduler
  bool sends = false;     ///< this rank's part in a stream; ping: it begins
  bool receives = false;  ///< likewise
  bool keep_load = false; ///< after `count` writes go on sending until the peer has received them,
                          ///< and so until the slower of two directions is done
  std::uint32_t in_flight = 1;
  std::uint64_t bytes = 0; ///< of one write
  std::uint64_t first = 0; ///< number of the first write: where in the footprint to begin
  /// Targets are this many places (or as many as there is room for), again and again, as the slots
  /// of a server's window; 0: they go round as the sources do.
  std::uint64_t slots = 0;
  std::uint64_t count = 0;
  std::uint64_t warm_up = 0;
};

/// What came of it. All times are monotonic_ns().
struct FabricOutcome {
  std::int64_t begin_ns = 0;        ///< just before our first write
  std::int64_t end_ns = 0;          ///< receiver of a stream: all `count` writes were here
  std::vector<std::int64_t> stamps; ///< who begins a ping: before each round trip, after the last
  std::uint64_t wrong_at = UINT64_MAX; ///< place of a byte that is not what was sent, if any
  std::string error;                   ///< the lane broke; told in a frame of its own
};

/// Bytes that one rank sends from and receives into, each, at most `most`. Writes go round it.
[[nodiscard]] std::uint64_t fabric_footprint(int rank, std::uint64_t most = UINT64_MAX);
/// Distance between the places of two writes in a row: whole pages for what is that long, else
/// whole cache lines.
[[nodiscard]] std::uint64_t fabric_place(std::uint64_t bytes);

using MakeMover = std::function<std::unique_ptr<Mover>(const std::string& transport)>;

struct FabricMember {
  int rank = 0;
  std::string transport;
  std::uint64_t seed = 1;               ///< of the data that are sent
  std::uint64_t footprint = UINT64_MAX; ///< most memory for each of source and target
};

/// The life of one rank: makes its mover, exchanges addresses through `socket`, then carries out
/// orders until the socket closes. For a process of its own; every error goes into the socket.
void serve_fabric_rank(const FabricMember& member, int socket, const MakeMover& make);

/// Frames on a stream socket: a kind and a text. send_frame throws Error{operation} when the other
/// side is gone; receive_frame returns false then, and when nothing came within `limit_ms`.
enum class FrameKind : std::uint32_t {
  address,
  addresses,
  ready,
  order,
  go,
  outcome,
  error,
  unavailable
};
void send_frame(int socket, FrameKind kind, const std::string& text);
[[nodiscard]] bool receive_frame(int socket, FrameKind& kind, std::string& text, int limit_ms);

[[nodiscard]] std::string encode(const FabricOrder& order);
[[nodiscard]] std::string encode(const FabricOutcome& outcome);
[[nodiscard]] FabricOrder decode_order(const std::string& text);
[[nodiscard]] FabricOutcome decode_outcome(const std::string& text);

} // namespace reckon
