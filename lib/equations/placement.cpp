// SPDX-License-Identifier: Apache-2.0
#include "equations/placement.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

namespace reckon {
namespace {

void check_sum(const std::vector<std::uint64_t>& loads) {
  std::uint64_t total = 0;
  for (const std::uint64_t load : loads) {
    if (load > std::numeric_limits<std::uint64_t>::max() - total) {
      fail(ErrorKind::usage, "placement: the loads add up to more than 64 bits hold");
    }
    total += load;
  }
}

std::vector<std::size_t> longest_first(const std::vector<std::uint64_t>& loads) {
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return loads[a] > loads[b]; });
  return order;
}

/// Item order[i] to the bin with the least of what was on record, then recorded[i] onto that.
Balance to_least(const std::vector<std::uint64_t>& loads, const std::vector<std::size_t>& order,
                 const std::vector<std::size_t>& recorded, std::size_t bins) {
  if (bins == 0) {
    fail(ErrorKind::usage, "placement: no cores: at least one is needed");
  }
  check_sum(loads);
  using Bin = std::pair<std::uint64_t, std::size_t>; // load on record, then index: the tie rule
  std::vector<Bin> empty(bins);
  for (std::size_t b = 0; b < bins; ++b) {
    empty[b] = {0, b};
  }
  std::priority_queue<Bin, std::vector<Bin>, std::greater<>> least(std::greater<>{},
                                                                   std::move(empty));
  Balance out{std::vector<std::size_t>(loads.size()), std::vector<std::uint64_t>(bins, 0)};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto [on_record, bin] = least.top();
    least.pop();
    out.bin_of[order[i]] = bin;
    out.loads[bin] += loads[order[i]];
    least.emplace(on_record + loads[recorded[i]], bin);
  }
  return out;
}

} // namespace

Balance balance_longest_first(const std::vector<std::uint64_t>& loads, std::size_t bins) {
  const std::vector<std::size_t> order = longest_first(loads);
  return to_least(loads, order, order, bins);
}

Balance balance_as_phub_released(const std::vector<std::uint64_t>& loads, std::size_t bins) {
  std::vector<std::size_t> as_given(loads.size());
  std::iota(as_given.begin(), as_given.end(), std::size_t{0});
  return to_least(loads, longest_first(loads), as_given, bins);
}

Balance balance_by_speed(const std::vector<std::uint64_t>& loads,
                         const std::vector<double>& speeds) {
  if (speeds.empty()) {
    fail(ErrorKind::usage, "placement: no interfaces: at least one is needed");
  }
  for (const double speed : speeds) {
    if (!(speed > 0) || !std::isfinite(speed)) {
      fail(ErrorKind::usage,
           fmt::format("placement: a speed must be a number greater than 0, not {}", speed));
    }
  }
  check_sum(loads);
  if (std::adjacent_find(speeds.begin(), speeds.end(), std::not_equal_to<>()) == speeds.end()) {
    return balance_longest_first(loads, speeds.size()); // the same, and not bin by bin
  }
  Balance out{std::vector<std::size_t>(loads.size()), std::vector<std::uint64_t>(speeds.size(), 0)};
  for (const std::size_t item : longest_first(loads)) {
    std::size_t first = 0;
    double first_done = std::numeric_limits<double>::infinity();
    for (std::size_t b = 0; b < speeds.size(); ++b) {
      const double done = static_cast<double>(out.loads[b] + loads[item]) / speeds[b];
      if (done < first_done) {
        first = b;
        first_done = done;
      }
    }
    out.bin_of[item] = first;
    out.loads[first] += loads[item];
  }
  return out;
}

double fullest_at_most(std::uint64_t total, std::uint64_t longest, std::size_t bins) {
  const auto count = static_cast<double>(bins);
  return (static_cast<double>(total) + (count - 1) * static_cast<double>(longest)) / count;
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

std::optional<std::vector<std::uint64_t>> cut_into_pieces(std::span<const std::uint64_t> keys,
                                                          std::uint64_t chunk_bytes) {
  std::vector<std::uint64_t> pieces;
  for (const std::uint64_t key : keys) {
    const Chunks chunks = cut_into_chunks(key, chunk_bytes);
    if (chunks.count > k_most_pieces - pieces.size()) {
      return std::nullopt;
    }
    if (chunks.count > 0) {
      pieces.insert(pieces.end(), chunks.count - 1, chunks.full_bytes);
      pieces.push_back(chunks.last_bytes);
    }
  }
  return pieces;
}

} // namespace reckon
