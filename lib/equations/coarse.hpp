// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "stats/curve.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

/// Memory devices: COARSE (HPCA'22), sections III-E, III-F and IV-B, with the corrections that
/// docs/equations.md lists. Plain doubles: bytes, bytes per second, seconds. Invalid arguments
/// throw Error{usage}.
namespace reckon {

// ---------------------------------------------------------------- routing

/// Equation 28: the client's proxy with the least latency and the one with the greatest bandwidth.
struct ProxyChoice {
  std::size_t latency = 0;   ///< index of LatProxy
  std::size_t bandwidth = 0; ///< index of BwProxy; equal to `latency` where no other is faster
  bool operator==(const ProxyChoice&) const = default;
};

/// Latency is the time at the smallest common size, at or above which all were tested; bandwidth is
/// bytes over seconds at the largest common size. Proxies within `tolerance` (0.02 for 2 %) of the
/// best count as equal: LatProxy is the first of these in the given order (so local ones first),
/// BwProxy is LatProxy if that is among the equal ones, else the first of them. At least one proxy.
[[nodiscard]] ProxyChoice choose_proxies(std::span<const Curve> proxies, double tolerance);

/// A number of tensors of one size.
struct SizeCount {
  double bytes = 0;
  double count = 1;
};

/// A range of sizes and the proxy that is nowhere slower in it.
struct RoutingInterval {
  double from_bytes = 0;
  double to_bytes = std::numeric_limits<double>::infinity();
  bool bandwidth_proxy = false;
  bool operator==(const RoutingInterval&) const = default;
};

/// Equation 29. The rule is the paper's: tensors larger than the threshold to BwProxy, all others,
/// the threshold's own size included, to LatProxy.
struct Routing {
  /// Absent: LatProxy for everything. 0: BwProxy for everything.
  std::optional<double> threshold_bytes;
  /// Every size at which the faster proxy changes, ascending. Where both are equally fast over a
  /// range between, LatProxy has the range.
  std::vector<double> crossings_bytes;
  /// All sizes from 0 on; one more than there are crossings.
  std::vector<RoutingInterval> intervals;
  /// More than one crossing: no single threshold is right for all sizes.
  bool several = false;
  /// LatProxy is the faster one beyond the last crossing: the proxies may have been exchanged.
  bool reversed = false;
  double threshold_s = 0; ///< all sizes together, by the threshold
  double best_s = 0;      ///< all sizes together, each by its faster proxy; <= threshold_s
  double latency_s = 0;   ///< all sizes together, by LatProxy
  double bandwidth_s = 0; ///< all sizes together, by BwProxy
};

/// With one crossing upwards (LatProxy below, BwProxy above) that is the threshold. Otherwise the
/// threshold is, of the upward crossings, 0 and none, the one with the least total time over
/// `sizes`; equal totals go to the smallest crossing, then to 0. `sizes`: the tensors of a
/// workload; empty: every tested size of a curve, once. Crossings above 2^53 bytes do not count.
[[nodiscard]] Routing solve_routing(const Curve& latency_proxy, const Curve& bandwidth_proxy,
                                    std::span<const SizeCount> sizes = {});

// ---------------------------------------------------------------- partition

/// The default tolerance for S': the paper gives no value.
inline constexpr double k_partition_tolerance = 0.02;

/// Equation 30: S', the smallest tested size whose bandwidth is at least (1 - tolerance) times the
/// greatest tested one. 0 <= tolerance < 1. A sample of 0 bytes has no bandwidth and is never S';
/// at least one other is needed.
[[nodiscard]] double partition_bytes(const Curve& curve, double tolerance = k_partition_tolerance);

/// Equation 31: floor(tensor / S') equal shards, each at least S' (section IV-B); a tensor below S'
/// is one. Shards are whole elements where the tensor is, else whole bytes, and differ by one
/// element at most: the larger ones first. No shards for an empty tensor; `partition_bytes` of 0
/// does not partition. More than 10'000'000 shards are an error.
[[nodiscard]] std::vector<std::uint64_t> shards_of(std::uint64_t tensor_bytes,
                                                   std::uint64_t partition_bytes,
                                                   std::uint64_t element_bytes = 4);

// ---------------------------------------------------------------- dual synchronization

/// When the workers' own ring starts.
enum class WorkerRing {
  when_ready,     ///< with the first gradient behind the proxies' part, beside the backward pass
  after_backward, ///< as in the paper's formula
};

/// The inputs of section III-F's m.
struct DualSync {
  std::uint64_t workers = 1;    ///< p >= 1
  std::uint64_t devices = 1;    ///< q, 1 <= q <= p; the paper's formula knows only p
  double bytes = 0;             ///< n: of the gradient
  double proxy_bytes_per_s = 0; ///< BW_proxy: a device's port, each direction
  double gpu_bytes_per_s = 0;   ///< BW_GPU: the slowest hop of the workers' ring, each direction
  /// A client's link to its proxy, each direction. Absent: as fast as BW_proxy.
  std::optional<double> client_bytes_per_s;
  double forward_s = 0;  ///< T_FP
  double backward_s = 0; ///< T_BP
  WorkerRing ring = WorkerRing::when_ready;
  /// The ring passes the same links as push and pull. The proxies' part then goes first.
  bool shared_link = false;
};

enum class DualSyncModel {
  paper, ///< equation 32: two rings and nothing else; uses neither q, the client's link, nor ring
  corrected, ///< equation 33: push and pull, shared devices, and gradients as they become ready
};

/// The time of an iteration with the first `proxy_bytes` (m) in gradient order through the proxies,
/// the rest by the workers' ring. 0 <= m <= n.
[[nodiscard]] double dual_sync_s(const DualSync& sync, DualSyncModel model, double proxy_bytes);

struct DualSplit {
  double proxy_bytes = 0;      ///< m: the least with the best time
  double most_proxy_bytes = 0; ///< every m from proxy_bytes to here has that time
  double worker_bytes = 0;     ///< n - m
  double time_s = 0;
  bool clipped = false; ///< the time would still fall beyond this end of [0, n]
};

/// The best m. The time is the greatest of a few linear functions of m, so the best is a crossing
/// of two or an end of [0, n]; these are compared, without a search. One worker has nothing to
/// synchronize, and m = 0.
[[nodiscard]] DualSplit solve_dual_sync(const DualSync& sync, DualSyncModel model);

struct DualRounding {
  std::size_t tensors = 0; ///< the first tensors, in gradient order, for the proxies
  double proxy_bytes = 0;
  double time_s = 0;
  double cost_s = 0; ///< time_s less that of the best m; >= 0
};

/// The best m that cuts no tensor; the smallest if several are equal. `tensor_bytes` are in
/// gradient order and add up to sync.bytes.
[[nodiscard]] DualRounding round_dual_sync(const DualSync& sync, DualSyncModel model,
                                           std::span<const std::uint64_t> tensor_bytes);

} // namespace reckon
