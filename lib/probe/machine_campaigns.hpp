// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/workbench.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace reckon {

/// Time until another core sees a changed cache line: two pinned threads hand one line back and
/// forth by compare-and-swap; the value is one way, half of a round trip. All ordered pairs of 4
/// evenly spread cores; thoroughly of 16.
[[nodiscard]] Campaign core_latency_campaign(Workbench& bench);

/// Time of 20 million dependent multiplications on every core at once, until the last core has
/// finished: the clock rate of the slowest core, and the load by others. A sample lasts longer than
/// others' turns on a processor.
[[nodiscard]] Campaign processor_campaign(Workbench& bench);

/// Time of a dependent load: in each cache of the first node (`state` L1, L2, ...; half of it is
/// visited), and from each node to each memory ("memory"; four times the last-level cache). `from`
/// is the thread's node, `to` the memory's. Thoroughly also by footprint (`bytes`) from 16 KiB on.
[[nodiscard]] Campaign memory_latency_campaign(Workbench& bench);

/// Links the lines (64 bytes) of `memory` to one cycle that visits every line once, in random order
/// within regions of `region_bytes` that are visited in random order, and returns its first line. A
/// line holds the address of the next in its first 8 bytes. `memory` starts at a line and holds at
/// least one.
[[nodiscard]] void** build_chase(std::span<std::byte> memory, std::size_t region_bytes,
                                 std::uint64_t seed);

/// Rates between NUMA nodes from cold memory, for each pair of nodes, with one thread and with all.
/// Bytes go from `from` to `to`, each counted once (payload):
/// - copy: memcpy by threads next to `from`;
/// - read: threads next to `to` add up what lies on `from`;
/// - write: threads next to `from` fill memory of `to` (memset).
/// "two_way": half of the threads move the other way at the same time; the value is the sum of both
/// directions, the remark gives each. A pair is measured two-way once, with
/// from <= to; on one node the two streams run through it in opposite directions.
[[nodiscard]] Campaign numa_bandwidth_campaign(Workbench& bench);

/// The greatest rates of this machine's memory, as STREAM counts them (reads and writes, without
/// the reads that precede writes): copy, a = b, and add, a = b + c, by number of threads over all
/// nodes and, with several nodes, by all threads of each. The better of ordinary and non-temporal
/// stores. These are the ceilings of the other cells.
[[nodiscard]] Campaign stream_campaign(Workbench& bench);

/// Rates of adding gradients (BytePS figure 9a): for fp32, fp16 and bf16, by number of threads,
/// with 2, 4 and 8 operands (`sources`) in parts of 256 KiB, 1 MiB and 4 MiB (`bytes`) from cold
/// memory; only thoroughly all combinations. The first operand is also the destination, as on a
/// server that adds arrivals to its own data. The rate is that of all threads together and counts
/// arrivals: bytes of one operand times (sources - 1).
[[nodiscard]] Campaign reduce_campaign(Workbench& bench);

/// The work of ranks that share memory on a part (Plan::sums_in_place): 2, 4 and 8 operands
/// (`sources`) of 1 MiB in memory that processes can share, cold, become the sum of all, by number
/// of threads: fp32 with all numbers of operands, fp16 and bf16 with two. The rate is that of all
/// threads together and counts reads and writes: twice the bytes of all operands.
[[nodiscard]] Campaign in_place_campaign(Workbench& bench);

/// The work of a server without a gradient on a part (PHub's aggregator): operands from cold memory
/// are summed into a slot of a window, in fp32, and the sum is read at once, as by a transport that
/// sends it. With stores through the caches and around them (`operation`), one thread and all, 2
/// and 8 operands, parts of 32 KiB to 4 MiB. The rate counts as reduce_sum.
[[nodiscard]] Campaign stores_campaign(Workbench& bench);

/// Rates of optimizer steps (BytePS figure 9b): SGD, momentum, RMSProp and Adam in fp32, by number
/// of threads, in parts of 1 MiB from cold memory. The rate counts bytes of parameters of all
/// threads together, without gradient and state.
[[nodiscard]] Campaign optimizer_campaign(Workbench& bench);

/// Communication and computation in each other's way (ACE, section III): how long a communication
/// of 1, 10 and 100 MiB takes while something is computed, how long the computation takes while
/// communications run, and both alone.
///
/// - Communication: a copy from the node's memory to a node's (`from`, `to`), or the sum of what
///   arrived into what is there (`from`, `dtype` fp32, 2 `sources`), which is a CPU's work while
///   gradients travel. From cold memory; all data verified.
/// - Computation, `operation`: "gemm_N", the fp32 product of two N x N matrices (Eigen), which
///   needs cores; "embedding_N", N random rows of 128 fp32 gathered from a table larger than the
///   caches, which needs memory.
/// - `threads` communicate, next to node `from`: a quarter of its cores while the computation has
///   the others, or all of them, with the computation on the same cores.
///
/// The recipe is ACE's, compute, post communication, compute again, wait; only that the second
/// goes on until the first has been timed often enough, so that all of it is disturbed.
[[nodiscard]] Campaign contention_campaign(Workbench& bench);

/// A computation beside the measured work.
struct ComputeKind {
  bool embedding = false; ///< lookups; else a matrix product
  std::size_t size = 0;   ///< side of a matrix, or size of a batch
  /// As CellKey::operation: "gemm_1000".
  [[nodiscard]] std::string name() const;
};

/// Adds to the key of a cell of contention the kind of its communication of key.bytes: a sum of two
/// fp32 operands, or a copy to `to`. Unchanged without a communication.
void describe_traffic(CellKey& key, bool sum, const std::string& to);

} // namespace reckon
