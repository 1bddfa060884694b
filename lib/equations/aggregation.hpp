// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Summing inside a machine: BytePS (OSDI'20), section 4.2.1, with the corrections that
/// docs/equations.md lists. Plain doubles: bytes, bytes per second, seconds.
namespace reckon {

/// p PCIe switches with n GPUs each, every link as fast in each direction. Processors, their memory
/// and the links between the switches are never the limit.
struct SwitchTree {
  std::uint64_t gpus_per_switch = 1; ///< n >= 1
  std::uint64_t switches = 1;        ///< p >= 1
  double model_bytes = 0;
  double gpu_bytes_per_s = 0;    ///< b_N: a GPU's link to its switch
  double switch_bytes_per_s = 0; ///< b_S: a switch's link to the processor
};

/// The kind of link that is busy all the time.
enum class SwitchTreeLimit {
  gpu_links,
  switch_links,
  both,
};

/// The best mix of brute force and CPU-assisted aggregation.
struct AggregationMix {
  double brute_force_fraction = 0; ///< x of equation 23; CPU-assisted is the rest
  double time_s = 0;
  SwitchTreeLimit limit = SwitchTreeLimit::both;
};

/// Equation 23: the time with `brute_force_fraction` x of the bytes by brute force, the rest
/// CPU-assisted, max(((2n-1)/n (1-x) + x) M / b_N, (n x + 1 - x) M / b_S). All of these throw
/// Error{usage} unless the tree is valid (at least one GPU and one switch, bandwidths positive and
/// finite, bytes finite and not negative), this one also unless 0 <= x <= 1.
[[nodiscard]] double aggregation_s(const SwitchTree& tree, double brute_force_fraction);

/// Its least value over x: where both links take equally long, or the nearer end of [0, 1]. With
/// one GPU a switch both schemes are the same and x is 0.
[[nodiscard]] AggregationMix solve_aggregation(const SwitchTree& tree);

/// Equation 24: CPU-assisted aggregation alone, M / b_S max(1, (2n-1) / (k n)), k = b_N / b_S. The
/// same as aggregation_s(tree, 0).
[[nodiscard]] double cpu_assisted_s(const SwitchTree& tree);

/// Equation 24: ring all-reduce of all n p GPUs, 2(np-1) M / (np b), b the slowest hop of the ring.
/// 0 for a single GPU.
[[nodiscard]] double ring_aggregation_s(const SwitchTree& tree, double bottleneck_bytes_per_s);

} // namespace reckon
