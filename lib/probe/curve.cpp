// SPDX-License-Identifier: Apache-2.0
#include "probe/curve.hpp"

#include "documents/cells.hpp"
#include "probe/pattern.hpp"
#include "stats/random.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint64_t k_smallest = 8;
constexpr std::uint64_t k_largest = std::uint64_t{256} << 20U;
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
  const std::uint64_t place = (size + 63) / 64 * 64;
  // Warm, each visit has other places: how two of them share a cache depends on where they are.
  std::mt19937_64 engine(bench.seed() + static_cast<std::uint64_t>(since.count() * 1e9));
  const auto somewhere = [&](std::size_t which) {
    const std::span<std::byte> memory = bench.memory(0, which, whole);
    return memory.data() +
           (cold ? 0 : uniform_index(engine, (whole - place) / k_page + 1) * k_page);
  };
  std::byte* const from = somewhere(0);
  std::byte* const to = somewhere(1);
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
          .visit = Seconds(0.010) + 6 * copy, // two go into the preparation
          .measure = [&bench, size, cold](Cell& cell, Seconds budget) {
            measure_copy(bench, size, cold, cell, budget);
          }};
}

/// Whether source and destination lie well inside the caches that a core has to itself. What fits
/// into a larger one depends on what other programs, or other virtual machines, keep there.
bool fits_own_caches(const Workbench& bench, std::uint64_t size) {
  constexpr int k_own_levels = 2;
  std::uint64_t own = 0;
  for (const auto& [level, bytes] : bench.caches()) {
    const double share = 2 * static_cast<double>(size) / static_cast<double>(bytes);
    if (share > 0.75 && share < 1.25) { // it is chance whether they fit
      return false;
    }
    own = level <= k_own_levels ? std::max(own, bytes) : own;
  }
  return 2 * size <= own;
}

} // namespace

std::vector<std::uint64_t> curve_sizes(std::uint64_t smallest, std::uint64_t largest,
                                       bool thorough) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = smallest; size <= largest; size *= 2) {
    const bool power_of_four = (size & 0x5555'5555'5555'5555) != 0;
    if (thorough || power_of_four) {
      sizes.push_back(size);
    }
    if (thorough && size + size / 2 <= largest) {
      sizes.push_back(size + size / 2);
    }
  }
  return sizes;
}

Campaign memcpy_curve_campaign(Workbench& bench) {
  Campaign campaign{.name = "memcpy curve"};
  const std::uint64_t largest = bench.thorough() ? k_largest : k_largest / 4;
  for (const bool cold : {false, true}) {
    for (const std::uint64_t size :
         curve_sizes(k_smallest, std::min(largest, bench.cold_bytes(0)), bench.thorough())) {
      if (cold || bench.thorough() || fits_own_caches(bench, size)) {
        campaign.plans.push_back(copy_plan(bench, size, cold));
      }
    }
  }
  return campaign;
}

} // namespace reckon
