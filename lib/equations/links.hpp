// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// What a matrix of bandwidths says of a machine: COARSE (HPCA'22), sections II-B and III-E. Plain
/// doubles: bytes per second. What is not valid as described throws Error{usage}.
namespace reckon {

/// [from][to] in bytes per second, above 0 and finite; absent where nothing leads from one to the
/// other. Square, at least two endpoints; what stands for an endpoint and itself is not read.
using LinkMatrix = std::vector<std::vector<std::optional<double>>>;

/// Equation 34: lanes of all GPUs over lanes of the processors; above 1, they cannot all talk to
/// the processors at once. All at least 1.
[[nodiscard]] double oversubscription(std::uint64_t gpus, std::uint64_t lanes_per_gpu,
                                      std::uint64_t processor_lanes);

/// Equation 35: a ring that passes every endpoint once, in one direction.
struct RingUse {
  std::vector<std::size_t> order;
  double bytes_per_s = 0;      ///< of its slowest link, and so of each of them
  double link_utilisation = 0; ///< endpoints * bytes_per_s over all links of the matrix
  /// The same over each endpoint's fastest link: what its port can send.
  double port_utilisation = 0;
};

/// Nothing where a link that `order` needs is absent. `order` has every endpoint once.
[[nodiscard]] std::optional<RingUse> ring_use(const LinkMatrix& matrix,
                                              std::span<const std::size_t> order);

/// How many endpoints are tried in all orders: 8! rings are 40320.
inline constexpr std::size_t k_most_ring_endpoints = 9;

struct RingExtremes {
  std::optional<RingUse> best, worst; ///< by bytes_per_s; the first in order of their numbers
  std::uint64_t rings = 0;            ///< that the matrix has, each counted once
  std::uint64_t orders = 0;           ///< tried: (endpoints - 1)!
};

/// All rings, by trying them. At most k_most_ring_endpoints.
[[nodiscard]] RingExtremes all_rings(const LinkMatrix& matrix);

/// Whether what lies under one switch is nearer in bandwidth, too.
enum class Locality {
  local,      ///< local copies are faster
  none,       ///< within the tolerance
  anti_local, ///< remote copies are faster
};

/// Equation 36.
struct LocalityReport {
  Locality machine = Locality::none;
  double local_bytes_per_s = 0;  ///< median over all links within a group
  double remote_bytes_per_s = 0; ///< median over all links between groups
  /// By the fastest link that leaves each within its group, and to others; absent where it has not
  /// both.
  std::vector<std::optional<Locality>> endpoints;
};

/// `group_of`: for each endpoint, which switch it is below. `tolerance`: 0.05 for 5 %: the faster
/// kind must be more than that above the other, 0 <= tolerance. At least one link within a group
/// and one between groups.
[[nodiscard]] LocalityReport classify_locality(const LinkMatrix& matrix,
                                               std::span<const std::size_t> group_of,
                                               double tolerance);

} // namespace reckon
