// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace reckon {

/// Items spread over bins.
struct Balance {
  std::vector<std::size_t> bin_of;  ///< one an item, in the order the items were given
  std::vector<std::uint64_t> loads; ///< one a bin
};

/// Equation 13 of docs/equations.md: longest first, each to the bin with the least load so far. The
/// fullest bin is at most (4/3 - 1/(3 bins)) times the best possible (Graham 1969), and at most the
/// mean plus one item. Ties go to the earlier item and to the lower bin, so that the same loads
/// always give the same result. O(n log n + n log bins). Throws Error{usage} when there is no bin,
/// or when the loads add up to more than 64 bits hold.
[[nodiscard]] Balance balance_longest_first(const std::vector<std::uint64_t>& loads,
                                            std::size_t bins);

/// Equation 13b: bins of unlike speed. Longest first, each to the bin that would finish it first:
/// the least (load + item) / speed, ties as above. The last bin is done by (sum of the loads +
/// (bins - 1) times the longest item) / (sum of the speeds). O(items (log items + bins)). Speeds
/// are in any one unit, each greater than 0 and finite (Error{usage}).
[[nodiscard]] Balance balance_by_speed(const std::vector<std::uint64_t>& loads,
                                       const std::vector<double>& speeds);

/// The algorithm of PHub's released partitioner in place of equation 13 (approximateSetPartition):
/// longest first to the bin with the least recorded load, but it records the load of the item at
/// that place of the unsorted list. `loads` of the result are the true ones.
[[nodiscard]] Balance balance_as_phub_released(const std::vector<std::uint64_t>& loads,
                                               std::size_t bins);

/// Equation 13's guarantee for the fullest of `bins`: the mean, and all but 1/bins of the longest
/// item (Graham 1966). 0 without items.
[[nodiscard]] double fullest_at_most(std::uint64_t total, std::uint64_t longest, std::size_t bins);

/// The fullest bin over the mean, at least 1. 1 without items, or with empty bins only.
[[nodiscard]] double max_over_mean(const std::vector<std::uint64_t>& loads);

/// Equation 12: how PHub cuts a key. A key larger than the chunk becomes ceil(size / chunk) pieces.
struct Chunks {
  std::uint64_t count = 0;      ///< 0 for an empty key
  std::uint64_t full_bytes = 0; ///< size of every piece except the last
  std::uint64_t last_bytes = 0; ///< the last piece: 1 to full_bytes
};

/// `chunk_bytes` must be greater than 0 (Error{usage}).
[[nodiscard]] Chunks cut_into_chunks(std::uint64_t bytes, std::uint64_t chunk_bytes);

/// GPT-2 XL in chunks of 1 KiB is 6 million; a chunk of a few bytes would only fill the memory.
inline constexpr std::uint64_t k_most_pieces = 10'000'000;

/// The sizes of all pieces of all keys, in order: equation 12. Absent for more than k_most_pieces.
/// `chunk_bytes` must be greater than 0 (Error{usage}).
[[nodiscard]] std::optional<std::vector<std::uint64_t>>
cut_into_pieces(std::span<const std::uint64_t> keys, std::uint64_t chunk_bytes);

} // namespace reckon
