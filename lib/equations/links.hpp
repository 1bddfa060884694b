// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// Properties of a matrix of bandwidths: COARSE (HPCA'22), sections II-B and III-E. Plain doubles:
/// bytes per second. Invalid arguments throw Error{usage}.
namespace reckon {

/// [from][to] in bytes per second, above 0 and finite; absent without a link. Square, at least two
/// endpoints; the diagonal is not read.
using LinkMatrix = std::vector<std::vector<std::optional<double>>>;

/// Equation 34: lanes of all GPUs over lanes of the processors; above 1, the GPUs cannot all use
/// the processors at full rate at once. All at least 1.
[[nodiscard]] double oversubscription(std::uint64_t gpus, std::uint64_t lanes_per_gpu,
                                      std::uint64_t processor_lanes);

/// Equation 35: a ring that passes every endpoint once, in one direction.
struct RingUse {
  std::vector<std::size_t> order;
  double bytes_per_s = 0;      ///< rate of its slowest link, and so of each of them
  double link_utilisation = 0; ///< endpoints * bytes_per_s over all links of the matrix
  /// The same over each endpoint's fastest link: its port's rate.
  double port_utilisation = 0;
};

/// Absent if a link of `order` is missing. `order` has every endpoint once.
[[nodiscard]] std::optional<RingUse> ring_use(const LinkMatrix& matrix,
                                              std::span<const std::size_t> order);

/// The most endpoints that are tried in all orders: 8! rings are 40320.
inline constexpr std::size_t k_most_ring_endpoints = 9;

struct RingExtremes {
  std::optional<RingUse> best, worst; ///< by bytes_per_s; the first in order of their numbers
  std::uint64_t rings = 0;            ///< rings with all their links, each counted once
  std::uint64_t orders = 0;           ///< tried orders: (endpoints - 1)!
};

/// All rings, by trying them. At most k_most_ring_endpoints.
[[nodiscard]] RingExtremes all_rings(const LinkMatrix& matrix);

/// Whether places under one switch also have the higher bandwidth.
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
  /// By the fastest link of each endpoint within its group, and to others; absent without both.
  std::vector<std::optional<Locality>> endpoints;
};

/// `group_of`: for each endpoint, the number of its switch. `tolerance`: 0.05 for 5 %: the faster
/// kind must exceed the other by more than that, 0 <= tolerance. At least one link within a group
/// and one between groups.
[[nodiscard]] LocalityReport classify_locality(const LinkMatrix& matrix,
                                               std::span<const std::size_t> group_of,
                                               double tolerance);

} // namespace reckon
