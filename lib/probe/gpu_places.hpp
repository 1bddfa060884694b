// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/gpu.hpp"
#include "probe/gpu.hpp"
#include "probe/gpu_timer.hpp"
#include "probe/workbench.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// A GPU to measure.
struct GpuPlace {
  int device = 0;
  std::string id;          ///< in the topology
  std::size_t near_node{}; ///< index into Workbench::nodes(): its own node, else the first
};

/// The common part of the GPU campaigns: two buffers on each GPU and two registered ones on each
/// NUMA node, made at first use and kept until close(). Buffer 0 is read, and holds the pattern of
/// its owner; buffer 1 is written.
class GpuPlaces {
public:
  GpuPlaces(GpuLibrary& library, Workbench& bench, const Topology& topology,
            const GpuProbeOptions& options);

  [[nodiscard]] GpuLibrary& library() const { return m_library; }
  [[nodiscard]] Workbench& bench() const { return m_bench; }
  [[nodiscard]] const std::vector<GpuPlace>& gpus() const { return m_gpus; }
  [[nodiscard]] std::uint64_t large_bytes() const { return m_options.large_bytes; }
  /// Whether two GPUs may use peer access; `why_not` otherwise.
  [[nodiscard]] bool peers(std::size_t from, std::size_t to, std::string* why_not = nullptr) const;
  /// Whether another link than PCIe, for example NVLink, joins two GPUs.
  [[nodiscard]] bool nvlinked(std::size_t from, std::size_t to) const {
    return m_nvlinked.at({from, to});
  }
  /// Turns peer access from one GPU to another on, or off. Off by default.
  void set_peer_access(std::size_t driver, std::size_t peer, bool on);

  /// One end of a copy: buffer 0 to read, buffer 1 to write. Buffers of pageable host memory are
  /// separate, and at most k_pageable_bytes long.
  struct End {
    bool is_gpu = true;
    std::size_t index = 0; ///< index of gpus() or of the bench's nodes
    bool pinned = true;    ///< host memory
  };
  static constexpr std::uint64_t k_pageable_bytes = 64ULL << 20U;
  [[nodiscard]] const std::string& id_of(End end) const;
  [[nodiscard]] std::byte* source(End end);
  [[nodiscard]] std::byte* target(End end);
  /// Overwrites the ends of `bytes` at `offset` of a target, so that missing bytes show.
  void spoil(End to, std::uint64_t offset, std::uint64_t bytes);
  /// Whether `bytes` at `offset` of the target equal the source's there; else the cell becomes a
  /// mismatch with the place. GPU memory is compared as a whole, host memory at the ends.
  void verify(Cell& cell, End from, End to, std::uint64_t offset, std::uint64_t bytes);

  /// A cell's remark on the host memory that it used.
  void remark_placement(Cell& cell, End end, bool written) const;

  /// Samples of one operation of all flows together, after one that does not count; see GpuTimer
  /// for `gated`. `budget` is for all time since `since`.
  [[nodiscard]] Samples sample(std::vector<GpuTimer::Flow> flows, bool gated, Seconds since,
                               Seconds budget) const;

  /// Frees everything and turns peer access off.
  void close();

private:
  struct Host {
    std::span<std::byte> memory;
    GpuRegistration registration;
  };
  static std::size_t buffer_of(End end, bool written) {
    return (end.pinned ? 0U : 2U) + (written ? 1U : 0U);
  }
  [[nodiscard]] std::byte* gpu_memory(std::size_t gpu, std::size_t which);
  [[nodiscard]] std::byte* host_memory(End end, bool written);
  [[nodiscard]] std::uint64_t salt_of(End end) const;
  [[nodiscard]] GpuStream stream(std::size_t gpu);

  GpuLibrary& m_library;
  Workbench& m_bench;
  GpuProbeOptions m_options;
  std::vector<GpuPlace> m_gpus;
  std::map<std::pair<std::size_t, std::size_t>, bool> m_nvlinked;
  std::map<std::pair<std::size_t, std::size_t>, bool> m_access;
  std::map<std::pair<std::size_t, std::size_t>, Host> m_hosts;
  std::map<std::pair<std::size_t, std::size_t>, GpuMemory> m_memory;
  std::map<std::size_t, GpuOwned<GpuStream>> m_streams;
};

/// One copy among a machine's GPUs and NUMA nodes: `bytes` from `offset` of the source to the same
/// place of the target.
struct GpuCopy {
  using End = GpuPlaces::End;
  enum class Engine {
    ce,     ///< the driver's copy engine
    sm,     ///< a kernel on the driver
    staged, ///< through the host, whatever the GPUs support
  };
  End from, to;
  Engine engine = Engine::ce;
  bool by_source = true; ///< driving end, where both are GPUs
  std::uint64_t offset = 0, bytes = 0;
  int blocks = 0; ///< sm; 0: all
  [[nodiscard]] bool pinned() const { return from.pinned && to.pinned; }
  /// The GPU that drives, as an index of GpuPlaces::gpus().
  [[nodiscard]] std::size_t driver() const;
};

/// The copy as work of a stream. Makes the buffers ready.
[[nodiscard]] GpuTimer::Flow flow_of(GpuPlaces& places, const GpuCopy& copy);

/// Turns peer access on or off as the copy needs it. Throws Error{unavailable} where the GPUs lack
/// it.
void settle_access(GpuPlaces& places, const GpuCopy& copy);

/// The mutual slow-down of transfers and computations on a GPU (ACE, section III and figure 4a):
/// copies to the host and sums of two operands of 1, 10 and 100 MiB beside fp32 matrix products of
/// side 500 and 1000 (cuBLAS) and embedding lookups of 1000 and 10000 bags.
///
/// contention_communication: seconds of a communication of `bytes`, alone (no `operation`) and
/// while `operation` runs over and over. contention_compute: seconds of `operation`, alone (no
/// `bytes`) and while communications of `bytes` do.
[[nodiscard]] std::vector<CellPlan> gpu_contention_plans(const std::shared_ptr<GpuPlaces>& places);

/// The capacities of links that the ways of several copies share, each direction: links_campaign()
/// of copies between GPUs and NUMA nodes, each way, and between GPUs with peer access. Copy engines
/// move them, host memory is pinned. Two GPUs joined by a link that the tree lacks are left out:
/// the links of their copies are unknown.
[[nodiscard]] Campaign gpu_links_campaign(const std::shared_ptr<GpuPlaces>& places,
                                          const Topology& topology, Seconds most);

} // namespace reckon
