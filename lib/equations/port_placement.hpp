// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// Which of a server's interfaces and cores takes which chunk: PHub (SysML'18), section 2, figure
/// 2a.
namespace reckon {

/// Interfaces and cores of a server, by the NUMA node that they are in, counted from 0.
struct ServerLayout {
  struct Interface {
    double bytes_per_s = 1; ///< or any other unit that is the same for all
    std::size_t node = 0;
  };
  std::vector<Interface> interfaces;
  std::vector<std::size_t> core_node; ///< one a core
};

/// So many interfaces and cores over so many nodes in equal blocks, interfaces of one speed: PBox
/// is (10, 28, 2). Error{usage} unless there are as many of both as nodes, and one node.
[[nodiscard]] ServerLayout equal_layout(std::size_t interfaces, std::size_t cores,
                                        std::size_t nodes);

/// One queue of one interface, served by one core: nobody else touches it.
struct PortLane {
  std::size_t interface = 0, node = 0, core = 0;
  std::uint64_t chunks = 0, bytes = 0;
  bool operator==(const PortLane&) const = default;
};

/// Chunks on interfaces, nodes and cores. Every chunk is in exactly one lane.
struct PortPlacement {
  std::vector<std::size_t> lane_of;           ///< one a chunk
  std::vector<PortLane> lanes;                ///< by interface, then core; none without a chunk
  std::vector<std::uint64_t> interface_bytes; ///< one each
  std::vector<std::uint64_t> node_bytes;
  std::vector<std::uint64_t> core_bytes;
};

/// Equation 13c: chunks to interfaces by their speed (13b), then those of all interfaces of a node
/// to the node's cores (13). A core that got chunks of two interfaces has a queue at each. Throws
/// Error{usage} when there is no interface, or a node has an interface and no core.
[[nodiscard]] PortPlacement place_on_ports(const std::vector<std::uint64_t>& chunks,
                                           const ServerLayout& layout);

/// The fullest of its kind over what would be its part if all were even, and what (13b) and (13)
/// guarantee of that. An interface's part is by its speed, a node's by that of its interfaces; all
/// cores' are equal.
struct Evenness {
  double over_mean = 1, at_most = 1;
};
struct PlacementEvenness {
  Evenness interfaces, nodes, cores;
};
/// `chunks` and `layout` as placed. Of no bytes at all: ones.
[[nodiscard]] PlacementEvenness evenness_of(const PortPlacement& placement,
                                            const ServerLayout& layout,
                                            const std::vector<std::uint64_t>& chunks);

/// What a chunk's size costs a server.
struct ChunkCosts {
  double write_s = 0;               ///< of an interface for each chunk, beside the bytes
  double interface_bytes_per_s = 0; ///< each way
  double sum_bytes_per_s = 0;       ///< of one core, bytes taken in; infinite: sums are free
  std::uint64_t workers = 1;
};

/// Equation 13d: an exchange of all workers through the server in chunks of `chunk_bytes`, placed
/// as given: the longest of an interface's writes and a core's sums, then what the pipeline takes
/// to fill: a chunk of every worker, and its sum. Seconds.
[[nodiscard]] double exchange_s(const PortPlacement& placement, const ChunkCosts& costs,
                                double chunk_bytes);

struct TriedChunk {
  std::uint64_t bytes = 0;
  double seconds = 0; ///< of an exchange: equation 13d
};
struct ChunkChoice {
  std::uint64_t bytes = 0;
  std::vector<TriedChunk> tried; ///< ascending
};

/// Equation 13d over the powers of two from 1 KiB to 16 MiB: the largest chunk that takes no more
/// than 0.2 % longer than the best. Chunks that could cut the keys into more than k_most_pieces are
/// not tried, nor those beyond the first that cuts no key. Where even 16 MiB make too many pieces,
/// 16 MiB with nothing tried. Throws as place_on_ports().
[[nodiscard]] ChunkChoice choose_chunk(std::span<const std::uint64_t> keys,
                                       const ServerLayout& layout, const ChunkCosts& costs);

} // namespace reckon
