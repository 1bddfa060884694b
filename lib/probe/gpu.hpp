// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/gpu.hpp"
#include "probe/campaign.hpp"
#include "probe/workbench.hpp"
#include "topology/topology.hpp"

#include <vector>

namespace reckon {

struct GpuProbeOptions {
  /// False: links between GPUs beside PCIe are not used, as in COARSE (section IV-B). CUDA has no
  /// switch for that, so pairs with such a link are measured through the host only.
  bool nvlink = true;
  std::uint64_t large_bytes = 256ULL << 20U; ///< of the bandwidth cells
  Seconds links_time{3};                     ///< most time for the capacities of shared links
};

/// What GPUs can do. Bandwidths in bytes per second, payload counted once, from pinned memory
/// unless `state` says pageable:
/// - host to device and back, between each NUMA node and each GPU, by copy engine and by SM, one
///   way and both; all GPUs at once;
/// - between GPUs, written by the source's device or read by the destination's; `state` is "peer"
///   or "staged", by way of the host. Both are measured: which one is faster differs (nccl issue
///   814);
/// - inside a GPU; by 1, 2, 4, ... blocks of 1024 threads (`threads`), one on each multiprocessor.
/// gpu_copy: seconds of one copy by size, for each ordered pair, back to back. Latencies: seconds
/// of one dependent load by a thread of `from`. gpu_reduce_sum: bytes of one operand times (sources
/// - 1) a second, as reduce_sum. Contention: contention_communication and contention_compute, in
/// seconds, for copies and sums beside matrix products and embedding lookups (ACE, section III).
/// link_bandwidth: what links carry that several of these ways share.
///
/// What was copied is compared, in every cell. `topology` has a GPU for each of the library's;
/// those that it lacks are left out.
[[nodiscard]] std::vector<Campaign> gpu_campaigns(GpuLibrary& library, Workbench& bench,
                                                  const Topology& topology,
                                                  const GpuProbeOptions& options);

} // namespace reckon
