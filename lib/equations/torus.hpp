// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// The demands of collectives on a torus on the network and on an endpoint's memory: ACE (ISCA'21),
/// sections III to VI. Plain doubles: bytes and bytes per second. Invalid arguments throw
/// Error{usage}.
namespace reckon {

/// Memory traffic of an endpoint without an engine, which keeps everything between two steps in
/// memory (ACE figure 8.b).
struct MemoryTraffic {
  double read_bytes = 0;     ///< to send, and to add to data that are sent on
  double last_sum_bytes = 0; ///< read for the last sums, which are kept and not sent
  double written_bytes = 0;  ///< arrivals, and the last sums

  MemoryTraffic& operator+=(const MemoryTraffic& other);
};

/// Equation 41: a ring of `nodes` >= 1, each with `bytes`; each ends with the sum of its part.
[[nodiscard]] MemoryTraffic reduce_scatter_traffic(std::uint64_t nodes, double bytes);
/// Equation 41: each has bytes / nodes and ends with all.
[[nodiscard]] MemoryTraffic all_gather_traffic(std::uint64_t nodes, double bytes);
/// Bytes that a node sends in either: (nodes - 1) / nodes of it.
[[nodiscard]] double ring_sent_bytes(std::uint64_t nodes, double bytes);

/// Bytes read from memory for each byte sent, in rings of any length (ACE VI-A): the limit of the
/// exact counts from both sides.
inline constexpr double k_reads_per_byte_sent = 1.5;

enum class TorusDimension { local, vertical, horizontal };
inline constexpr std::size_t k_torus_dimensions = 3;

/// L x V x H nodes (ACE V): local rings in a package, vertical and horizontal ones between them.
struct Torus {
  std::array<std::uint64_t, k_torus_dimensions> nodes{1, 1, 1}; ///< each at least 1
  /// Bytes per second that a node sends over its links of a dimension, both neighbours together;
  /// greater than 0 with more than one node.
  std::array<double, k_torus_dimensions> bytes_per_s{0, 0, 0};

  [[nodiscard]] std::uint64_t size() const { return nodes[0] * nodes[1] * nodes[2]; }
};

enum class CollectivePhase { reduce_scatter, all_reduce, all_gather };

/// One phase of a collective, for each byte that a node has of the gradient.
struct TorusPhase {
  CollectivePhase kind = CollectivePhase::all_reduce;
  TorusDimension dimension = TorusDimension::local;
  double data_bytes = 0;   ///< fraction that the node's ring works on: an all-gather ends with it
  double held_bytes = 0;   ///< fraction of that which the node has at the phase's start
  double sent_bytes = 0;   ///< by the node
  double summed_bytes = 0; ///< received bytes that are added
  MemoryTraffic memory;    ///< of an endpoint without an engine
};

/// The cost of a collective for each byte loaded from memory.
struct TorusTraffic {
  std::vector<TorusPhase> phases; ///< without dimensions of one node
  double loaded_bytes = 1;        ///< bytes that an engine with its own buffer loads once
  double sent_bytes = 0;          ///< for these; ACE's reuse R
  MemoryTraffic memory;           ///< of an endpoint without an engine
  std::array<double, k_torus_dimensions> dimension_bytes{}; ///< sent, by dimension
};

/// Equation 42: reduce-scatter local, all-reduce vertical and horizontal, all-gather local.
[[nodiscard]] TorusTraffic torus_all_reduce(const Torus& torus);
/// Equation 43: all send a distinct part to all, the shorter way round each dimension in turn.
[[nodiscard]] TorusTraffic torus_all_to_all(const Torus& torus);

/// Equation 44.
struct TorusLimit {
  double bytes_per_s = 0; ///< total rate of a node while its busiest dimension is always busy
  TorusDimension busiest = TorusDimension::local;
};
/// `traffic` must send a byte at least.
[[nodiscard]] TorusLimit torus_limit(const Torus& torus, const TorusTraffic& traffic);

/// All dimensions whose rings take as long as the busiest, except for rounding.
[[nodiscard]] std::vector<TorusDimension> busiest_dimensions(const Torus& torus,
                                                             const TorusTraffic& traffic);

/// The demand of `sent_bytes_per_s` of a collective on an endpoint's memory, in bytes per second.
struct TorusMemoryRates {
  double offload = 0; ///< read by an engine that loads each byte once, and written back as its sum
  double read = 0, read_with_last_sums = 0, written = 0; ///< without an engine, exactly
};
[[nodiscard]] TorusMemoryRates memory_rates(const TorusTraffic& traffic, double sent_bytes_per_s);

/// Streaming multiprocessors (or cores) that move `bytes_per_s`, each at most `each_bytes_per_s`.
[[nodiscard]] std::uint64_t movers_needed(double bytes_per_s, double each_bytes_per_s);

/// Equation 45: messages of a chunk in a ring: a multiple of `nodes`, none above `message_bytes`,
/// as few as possible (ACE IV-C).
[[nodiscard]] std::uint64_t messages_of_chunk(double chunk_bytes, double message_bytes,
                                              std::uint64_t nodes);

/// Equation 46: the division of an engine's buffer: in proportion to a phase's bandwidth times the
/// bytes of a chunk it begins with; the last one, for the way back to memory, is as large as the
/// one before it (ACE IV-I). One number for each phase and one more; they add up to `sram_bytes`.
[[nodiscard]] std::vector<double> sram_partitions(double sram_bytes, const Torus& torus,
                                                  std::span<const TorusPhase> phases);

} // namespace reckon
