// SPDX-License-Identifier: Apache-2.0
#include "probe/curve.hpp"

#include "documents/cells.hpp"
#include "probe/pattern.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint64_t k_smallest = 8;
constexpr std::uint64_t k_largest = std::uint64_t{256} << 20U;
/// Nearest that two sizes may be: 2^(1/8).
constexpr double k_nearest = 1.0905;
constexpr double k_bend = 0.10;

std::uint64_t rounded(double bytes) {
  const double unit = bytes < 128 ? 8 : 64;
  return static_cast<std::uint64_t>(std::round(bytes / unit) * unit);
}

/// Steps through `count` places so that neighbours in time are far apart in memory, and every place
/// is visited once a round.
std::uint64_t stride_for(std::uint64_t count) {
  auto stride = static_cast<std::uint64_t>(0.618034 * static_cast<double>(count)) | 1U;
  while (std::gcd(stride, count) != 1) {
    stride += 2;
  }
  return stride;
}

void measure_copy(Workbench& bench, std::uint64_t size, bool cold, Cell& cell, Seconds budget) {
  const Seconds since = bench.clock().now();
  const std::uint64_t whole = bench.cold_bytes(0);
  std::byte* const from = bench.memory(0, 0, whole).data();
  std::byte* const to = bench.memory(0, 1, whole).data();
  const std::uint64_t place = (size + 63) / 64 * 64;
  const std::uint64_t places = cold ? whole / place : 1;
  const std::uint64_t stride = stride_for(places);
  Team& team = bench.team(bench.cpus_near(0, 1));
  // The first place again after the last copy: a pattern there, poison where it goes.
  team.run([&](std::size_t) {
    fill_with_pattern({from, place}, bench.seed() + size);
    std::memset(to, 0xa5, place);
  });
  std::uint64_t at = 0;
  const Samples samples =
      bench.sample(team, since, budget, [&](std::size_t, std::uint64_t) noexcept {
        std::memcpy(to + at * place, from + at * place, size);
        asm volatile("" : : : "memory"); // each copy must be made
        at += stride;
        at -= at >= places ? places : 0;
      });
  fill_cell(cell, samples, 0);
  bench.remark_placement(cell, 0, 0);
  if (cell.has_value() && std::memcmp(to, from, size) != 0) {
    discard(cell, CellStatus::mismatch, "the copy differs from its source");
  }
}

CellPlan copy_plan(Workbench& bench, std::uint64_t size, bool cold) {
  const std::string& node = bench.nodes()[0].id;
  // A few of the largest copies, at a few GB/s.
  const Seconds copy(static_cast<double>(size) * 0.25e-9);
  return {.key = {.test = k_host_memcpy,
                  .from = node,
                  .to = node,
                  .bytes = size,
                  .threads = 1,
                  .state = cold ? "cold" : "warm"},
          .least = Seconds(0.010) + 6 * copy, // two go into the preparation
          .wanted = Seconds(0.080) + 14 * copy,
          .rank = curve_rank(size),
          .measure = [&bench, size, cold](Cell& cell, Seconds budget) {
            measure_copy(bench, size, cold, cell, budget);
          }};
}

} // namespace

std::vector<std::uint64_t> refine_sizes(const std::map<std::uint64_t, CurveSample>& measured) {
  std::vector<std::pair<double, std::uint64_t>> wanted; // how far off, size
  if (measured.size() < 3) {
    return {};
  }
  std::set<std::uint64_t> planned;
  const auto want = [&](std::uint64_t low, std::uint64_t high, double off) {
    const std::uint64_t size =
        rounded(std::sqrt(static_cast<double>(low) * static_cast<double>(high)));
    const auto far = [](std::uint64_t a, std::uint64_t b) {
      return static_cast<double>(b) >= k_nearest * static_cast<double>(a);
    };
    if (far(low, size) && far(size, high) && planned.insert(size).second) {
      wanted.emplace_back(off, size);
    }
  };
  for (auto it = std::next(measured.begin()); std::next(it) != measured.end(); ++it) {
    const auto& [low, a] = *std::prev(it);
    const auto& [size, b] = *it;
    const auto& [high, c] = *std::next(it);
    const double part = static_cast<double>(size - low) / static_cast<double>(high - low);
    const double line = a.seconds + part * (c.seconds - a.seconds);
    const double off = std::abs(b.seconds - line) / line;
    const double noise = std::max({a.spread, b.spread, c.spread});
    if (off > std::max(k_bend, 4 * noise)) {
      want(low, size, off);
      want(size, high, off);
    }
  }
  std::stable_sort(wanted.begin(), wanted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::uint64_t> sizes;
  sizes.reserve(wanted.size());
  for (const auto& [off, size] : wanted) {
    sizes.push_back(size);
  }
  return sizes;
}

int curve_rank(std::uint64_t size) {
  const int power = static_cast<int>(std::bit_width(size)) - 1;
  return power % 4 == 0 ? 0 : power % 2 == 0 ? 1 : 2;
}

void add_refined(std::vector<CellPlan>& plans, const std::vector<Cell>& measured,
                 const std::function<CellPlan(std::uint64_t)>& plan_for) {
  const CellKey like = plan_for(k_smallest).key;
  std::map<std::uint64_t, CurveSample> curve;
  for (const Cell& cell : measured) {
    CellKey key = cell.key;
    key.bytes = like.bytes;
    if (cell.has_value() && key == like) {
      curve[cell.key.bytes] = {cell.p50, cell.spread};
    }
  }
  int rank = 0;
  for (const std::uint64_t size : refine_sizes(curve)) {
    plans.push_back(plan_for(size));
    plans.back().rank = rank++; // most telling first
  }
}

Campaign memcpy_curve_campaign(Workbench& bench) {
  const auto plan = [&bench] {
    std::vector<CellPlan> plans;
    for (const bool cold : {false, true}) {
      for (std::uint64_t size = k_smallest; size <= std::min(k_largest, bench.cold_bytes(0));
           size *= 2) {
        plans.push_back(copy_plan(bench, size, cold));
      }
    }
    return plans;
  };
  const auto more = [&bench](const std::vector<Cell>& cells) {
    std::vector<CellPlan> plans;
    for (const bool cold : {false, true}) {
      add_refined(plans, cells, [&](std::uint64_t size) { return copy_plan(bench, size, cold); });
    }
    return plans;
  };
  return {.name = "memcpy curve", .share = 0.10, .plan = plan, .more = more};
}

} // namespace reckon
