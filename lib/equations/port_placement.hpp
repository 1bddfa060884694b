// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// The interface and core of each chunk on a server: PHub (SysML'18), section 2, figure 2a.
namespace reckon {

/// Interfaces and cores of a server, by their NUMA node, counted from 0.
struct ServerLayout {
  struct Interface {
    double bytes_per_s = 1; ///< or any other common unit
    std::size_t node = 0;
  };
  std::vector<Interface> interfaces;
  std::vector<std::size_t> core_node; ///< one a core
};

/// Interfaces and cores over nodes in equal blocks, interfaces of one speed: PBox is (10, 28, 2).
/// Error{usage} unless there are as many of both as nodes, and one node.
[[nodiscard]] ServerLayout equal_layout(std::size_t interfaces, std::size_t cores,
                                        std::size_t nodes);

/// One queue of one interface, served by one core, shared with no other.
struct PortLane {
  std::size_t interface = 0, node = 0, core = 0;
  std::uint64_t chunks = 0, bytes = 0;
  bool operator==(const PortLane&) const = default;
};

/// Chunks on interfaces, nodes and cores. Every chunk is in exactly one lane.
struct PortPlacement {
  std::vector<std::size_t> lane_of;           ///< one a chunk
  std::vector<PortLane> lanes;                ///< by interface, then core; empty without chunks
  std::vector<std::uint64_t> interface_bytes; ///< one each
  std::vector<std::uint64_t> node_bytes;
  std::vector<std::uint64_t> core_bytes;
};

/// Equation 13c: chunks to interfaces by their speed (13b), then those of all interfaces of a node
/// to the node's cores (13). A core with chunks of two interfaces has a queue at each. Throws
/// Error{usage} without an interface, or for a node with an interface and no core.
[[nodiscard]] PortPlacement place_on_ports(const std::vector<std::uint64_t>& chunks,
                                           const ServerLayout& layout);

/// The fullest of its kind over its part if all were even, and the guarantee of (13b) and (13). An
/// interface's part is by its speed, a node's by that of its interfaces; all cores' are equal.
struct Evenness {
  double over_mean = 1, at_most = 1;
};
struct PlacementEvenness {
  Evenness interfaces, nodes, cores;
};
/// `chunks` and `layout` as placed. Ones without any bytes.
[[nodiscard]] PlacementEvenness evenness_of(const PortPlacement& placement,
                                            const ServerLayout& layout,
                                            const std::vector<std::uint64_t>& chunks);

/// The cost of a chunk's size on a server.
struct ChunkCosts {
  double write_s = 0;               ///< time of an interface for each chunk, beside the bytes
  double interface_bytes_per_s = 0; ///< each way
  double sum_bytes_per_s = 0;       ///< rate of one core, bytes taken in; infinite: sums are free
  std::uint64_t workers = 1;
};

/// Equation 13d: an exchange of all workers through the server in chunks of `chunk_bytes`, placed
/// as given: the longest of an interface's writes and a core's sums, then the fill of the pipeline:
/// a chunk of every worker, and its sum. Seconds.
[[nodiscard]] double exchange_s(const PortPlacement& placement, const ChunkCosts& costs,
                                double chunk_bytes);

struct TriedChunk {
  std::uint64_t bytes = 0;
  double seconds = 0; ///< time of an exchange: equation 13d
};
struct ChunkChoice {
  std::uint64_t bytes = 0;
  std::vector<TriedChunk> tried; ///< ascending
};

/// Equation 13d over the powers of two from 1 KiB to 16 MiB: the largest chunk within 0.2 % of the
/// best. Chunks that could cut the keys into more than k_most_pieces are not tried, nor those
/// beyond the first that cuts no key. If even 16 MiB make too many pieces, 16 MiB without a try.
/// Throws as place_on_ports().
[[nodiscard]] ChunkChoice choose_chunk(std::span<const std::uint64_t> keys,
                                       const ServerLayout& layout, const ChunkCosts& costs);

} // namespace reckon
