// SPDX-License-Identifier: Apache-2.0
#include "strategies/parts.hpp"

#include "core/error.hpp"
#include "equations/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <queue>

namespace reckon {
namespace {

constexpr std::uint64_t k_page_bytes = 4096;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

/// [offset, offset + bytes) in pieces of `step`, the last one shorter.
void cut_range(Parts& parts, std::uint64_t offset, std::uint64_t bytes, std::uint64_t step) {
  for (std::uint64_t done = 0; done < bytes; done += step) {
    parts.offset_bytes.push_back(offset + done);
    parts.bytes.push_back(std::min(step, bytes - done));
  }
}

/// Hands items out so that each rank's load stays in proportion to its share.
class Proportional {
public:
  explicit Proportional(std::span<const double> shares, double typical_bytes) : m_shares(shares), m_step(typical_bytes) {
    m_loads.assign(shares.size(), 0);
    for (std::size_t r = 0; r < shares.size(); ++r) {
      if (shares[r] > 0) {
        push(r);
      }
    }
  }
  std::size_t give(double bytes) {
    const std::size_t rank = m_queue.top().second;
    m_queue.pop();
    m_loads[rank] += bytes;
    push(rank);
    return rank;
  }

private:
  void push(std::size_t rank) {
    // When the rank would be done with one more typical part: the least is furthest behind.
    m_queue.emplace((m_loads[rank] + m_step) / m_shares[rank], rank);
  }
  using Entry = std::pair<double, std::size_t>;
  std::span<const double> m_shares;
  double m_step;
  std::vector<double> m_loads;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> m_queue; // ties: the lower rank
};

/// A well-mixed hash of a part's number (the finalizer of splitmix64), the same on every machine.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

} // namespace

Parts cut(const GradientLayout& layout, const Workload& workload, std::uint64_t part_bytes, Cutting cutting,
          std::uint64_t multiple_of) {
  if (part_bytes < 64) {
    fail(ErrorKind::usage, fmt::format("--part-bytes {}: parts must have at least 64 bytes", part_bytes));
  }
  Parts parts;
  if (cutting == Cutting::tensors) {
    for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
      const std::uint64_t bytes = workload.tensors[t].bytes();
      if (bytes > 0) {
        const std::uint64_t pieces = (bytes + part_bytes - 1) / part_bytes;
        const std::uint64_t step = std::min(round_up((bytes + pieces - 1) / pieces, 64), part_bytes / 64 * 64);
        cut_range(parts, layout.tensor_offset_bytes[t], bytes, step);
      }
    }
    return parts;
  }
  for (const GradientLayout::Run& run : layout.runs) {
    if (run.bytes == 0) {
      continue;
    }
    std::uint64_t pieces = (run.bytes + part_bytes - 1) / part_bytes;
    if (multiple_of > 1 && pieces >= multiple_of) {
      pieces = round_up(pieces, multiple_of);
    }
    std::uint64_t step = (run.bytes + pieces - 1) / pieces;
    const std::uint64_t paged = round_up(step, k_page_bytes);
    // Page-aligned parts (BytePS 6.2), unless rounding would exceed the size asked for or make the parts unequal by
    // more than a hundredth.
    step = paged <= part_bytes && paged - step <= step / 100 ? paged : std::min(round_up(step, 64), part_bytes / 64 * 64);
    cut_range(parts, run.offset_bytes, run.bytes, step);
  }
  return parts;
}

std::vector<double> loads_of(const Parts& parts, std::size_t ranks) {
  std::vector<double> loads(ranks, 0);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    loads[parts.server[p]] += static_cast<double>(parts.bytes[p]);
  }
  return loads;
}

void assign_by_hash(Parts& parts, std::span<const double> shares) {
  // Slot boundaries in proportion to the shares; a part's slot is its hash, scaled to [0, total).
  std::vector<double> upper(shares.size());
  std::partial_sum(shares.begin(), shares.end(), upper.begin());
  parts.server.assign(parts.size(), 0);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const double at = static_cast<double>(mix(p) >> 11U) * 0x1p-53 * upper.back();
    const auto it = std::upper_bound(upper.begin(), upper.end(), at);
    parts.server[p] = static_cast<std::uint64_t>(std::min(it - upper.begin(), static_cast<std::ptrdiff_t>(shares.size()) - 1));
  }
}

double assign_servers(Parts& parts, std::span<const double> shares,
                      const std::function<double(std::span<const double>)>& time_of) {
  if (parts.size() == 0) {
    return time_of(std::vector<double>(shares.size(), 0));
  }
  const auto [least, most] = std::minmax_element(parts.bytes.begin(), parts.bytes.end() - 1);
  const double typical = static_cast<double>(*std::max_element(parts.bytes.begin(), parts.bytes.end()));
  const bool equal_parts = parts.size() < 2 || *least == *most; // but for the last, shorter one

  Proportional in_order(shares, typical);
  parts.server.resize(parts.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    parts.server[p] = in_order.give(static_cast<double>(parts.bytes[p]));
  }
  double best = time_of(loads_of(parts, shares.size()));
  const auto try_instead = [&](Parts&& other) {
    const double time = time_of(loads_of(other, shares.size()));
    if (time < best * (1 - 1e-9)) {
      best = time;
      parts.server = std::move(other.server);
    }
  };
  Parts other;
  if (!equal_parts) {
    other.bytes = parts.bytes;
    std::vector<std::uint32_t> order(parts.size());
    std::iota(order.begin(), order.end(), 0U);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return parts.bytes[a] > parts.bytes[b]; });
    Proportional longest_first(shares, 0.5 * static_cast<double>(parts.bytes[order.back()]) + 1);
    other.server.resize(parts.size());
    for (const std::uint32_t p : order) {
      other.server[p] = longest_first.give(static_cast<double>(parts.bytes[p]));
    }
    try_instead(std::move(other));
  }
  other.bytes = parts.bytes;
  assign_by_hash(other, shares);
  try_instead(std::move(other));
  return best;
}

void assign_lanes(Parts& parts, std::size_t servers, std::uint64_t lanes) {
  parts.lane.assign(parts.size(), 0);
  if (lanes < 2) {
    return;
  }
  std::vector<std::vector<std::size_t>> owned(servers);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    owned[parts.server[p]].push_back(p);
  }
  for (std::size_t s = 0; s < servers; ++s) {
    std::vector<std::uint64_t> bytes;
    for (const std::size_t p : owned[s]) {
      bytes.push_back(parts.bytes[p]);
    }
    const Balance balance = balance_longest_first(bytes, lanes);
    for (std::size_t i = 0; i < owned[s].size(); ++i) {
      parts.lane[owned[s][i]] = balance.bin_of[i];
    }
  }
}

} // namespace reckon
