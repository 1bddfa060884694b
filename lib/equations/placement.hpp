// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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

/// The fullest bin over the mean, at least 1. Of nothing, or of bins that are all empty: 1.
[[nodiscard]] double max_over_mean(const std::vector<std::uint64_t>& loads);

/// Equation 12: how PHub cuts a key. A key larger than the chunk becomes ceil(size / chunk) pieces.
struct Chunks {
  std::uint64_t count = 0;      ///< 0 for an empty key
  std::uint64_t full_bytes = 0; ///< every piece but the last
  std::uint64_t last_bytes = 0; ///< the last piece: 1 to full_bytes
};

/// `chunk_bytes` must be greater than 0 (Error{usage}).
[[nodiscard]] Chunks cut_into_chunks(std::uint64_t bytes, std::uint64_t chunk_bytes);

} // namespace reckon
