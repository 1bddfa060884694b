// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// What collectives on a torus ask of the network and of an endpoint's memory: ACE (ISCA'21),
/// sections III to VI. Plain doubles: bytes and bytes per second. What is not valid as described
/// throws Error{usage}.
namespace reckon {

/// What an endpoint without an engine of its own asks of its memory, which holds everything between
/// two steps (ACE figure 8.b).
struct MemoryTraffic {
  double read_bytes = 0;     ///< to send, and to add up what is sent on
  double last_sum_bytes = 0; ///< read for the last sums, which are kept and not sent
  double written_bytes = 0;  ///< what arrives, and the last sums

  MemoryTraffic& operator+=(const MemoryTraffic& other);
};

/// Equation 41: a ring of `nodes` >= 1, each with `bytes`; each ends with the sum of its part.
[[nodiscard]] MemoryTraffic reduce_scatter_traffic(std::uint64_t nodes, double bytes);
/// Equation 41: each has bytes / nodes and ends with all.
[[nodiscard]] MemoryTraffic all_gather_traffic(std::uint64_t nodes, double bytes);
/// What a node sends in either: (nodes - 1) / nodes of it.
[[nodiscard]] double ring_sent_bytes(std::uint64_t nodes, double bytes);

/// Bytes read from memory for each byte sent, however long the ring is (ACE VI-A): what the exact
/// counts come near to from both sides.
inline constexpr double k_reads_per_byte_sent = 1.5;

enum class TorusDimension { local, vertical, horizontal };
inline constexpr std::size_t k_torus_dimensions = 3;

/// L x V x H nodes (ACE V): local rings in a package, vertical and horizontal ones between them.
struct Torus {
  std::array<std::uint64_t, k_torus_dimensions> nodes{1, 1, 1}; ///< each at least 1
  /// What a node sends over its links of a dimension, both neighbours together; greater than 0
  /// where there is more than one node.
  std::array<double, k_torus_dimensions> bytes_per_s{0, 0, 0};

  [[nodiscard]] std::uint64_t size() const { return nodes[0] * nodes[1] * nodes[2]; }
};

enum class CollectivePhase { reduce_scatter, all_reduce, all_gather };

/// One phase of a collective, for each byte that a node has of the gradient.
struct TorusPhase {
  CollectivePhase kind = CollectivePhase::all_reduce;
  TorusDimension dimension = TorusDimension::local;
  double data_bytes = 0;   ///< what of it the node's ring works on: an all-gather ends with it
  double held_bytes = 0;   ///< what of that the node has at the phase's start
  double sent_bytes = 0;   ///< by the node
  double summed_bytes = 0; ///< of those received, what is added to something
  MemoryTraffic memory;    ///< of an endpoint without an engine
};

/// What a collective takes for each byte that is loaded from memory.
struct TorusTraffic {
  std::vector<TorusPhase> phases; ///< without those of a dimension of one node
  double loaded_bytes = 1;        ///< that an engine with its own buffer loads once
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
  double bytes_per_s = 0; ///< that a node sends, in all, while its busiest dimension is always busy
  TorusDimension busiest = TorusDimension::local;
};
/// `traffic` sends something.
[[nodiscard]] TorusLimit torus_limit(const Torus& torus, const TorusTraffic& traffic);

/// All dimensions whose rings take as long as the busiest, but for rounding.
[[nodiscard]] std::vector<TorusDimension> busiest_dimensions(const Torus& torus,
                                                             const TorusTraffic& traffic);

/// What `sent_bytes_per_s` of a collective ask of an endpoint's memory, in bytes per second.
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

/// Equation 46: how an engine's buffer is divided: in proportion to a phase's bandwidth times the
/// bytes of a chunk it begins with; the last one, for what goes back to memory, is as large as that
/// before it (ACE IV-I). One number for each phase and one more; they add up to `sram_bytes`.
[[nodiscard]] std::vector<double> sram_partitions(double sram_bytes, const Torus& torus,
                                                  std::span<const TorusPhase> phases);

} // namespace reckon
