// SPDX-License-Identifier: Apache-2.0
#include "equations/placement.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace reckon {

Balance balance_longest_first(const std::vector<std::uint64_t>& loads, std::size_t bins) {
  if (bins == 0) {
    fail(ErrorKind::usage, "placement: no cores: at least one is needed");
  }
  std::uint64_t total = 0;
  for (const std::uint64_t load : loads) {
    if (load > std::numeric_limits<std::uint64_t>::max() - total) {
      fail(ErrorKind::usage, "placement: the loads add up to more than 64 bits hold");
    }
    total += load;
  }
  std::vector<std::size_t> longest(loads.size());
  std::iota(longest.begin(), longest.end(), std::size_t{0});
  std::stable_sort(longest.begin(), longest.end(),
                   [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });

  using Bin = std::pair<std::uint64_t, std::size_t>; // load, then index: the tie rule
  std::vector<Bin> empty(bins);
  for (std::size_t b = 0; b < bins; ++b) {
    empty[b] = {0, b};
  }
  std::priority_queue<Bin, std::vector<Bin>, std::greater<>> least(std::greater<>{},
                                                                   std::move(empty));
  Balance out{std::vector<std::size_t>(loads.size()), std::vector<std::uint64_t>(bins, 0)};
  for (const std::size_t item : longest) {
    const std::size_t bin = least.top().second;
    least.pop();
    out.bin_of[item] = bin;
    out.loads[bin] += loads[item];
    least.emplace(out.loads[bin], bin);
  }
  return out;
}

double max_over_mean(const std::vector<std::uint64_t>& loads) {
  double total = 0;
  std::uint64_t fullest = 0;
  for (const std::uint64_t load : loads) {
    total += static_cast<double>(load);
    fullest = std::max(fullest, load);
  }
  if (fullest == 0) {
    return 1;
  }
  return static_cast<double>(fullest) * static_cast<double>(loads.size()) / total;
}

Chunks cut_into_chunks(std::uint64_t bytes, std::uint64_t chunk_bytes) {
  if (chunk_bytes == 0) {
    fail(ErrorKind::usage, "placement: chunks of 0 bytes: at least 1 is needed");
  }
  if (bytes == 0) {
    return {};
  }
  const std::uint64_t count = (bytes - 1) / chunk_bytes + 1;
  const std::uint64_t last = bytes - (count - 1) * chunk_bytes;
  return {count, count == 1 ? bytes : chunk_bytes, last};
}

} // namespace reckon
