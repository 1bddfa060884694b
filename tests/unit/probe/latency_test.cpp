// SPDX-License-Identifier: Apache-2.0
#include "probe/machine_campaigns.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

namespace reckon {
namespace {

struct Lines {
  explicit Lines(std::size_t lines)
      : storage(static_cast<std::byte*>(std::aligned_alloc(64, 64 * lines)), &std::free),
        memory(storage.get(), 64 * lines) {}
  std::unique_ptr<std::byte, void (*)(void*)> storage;
  std::span<std::byte> memory;
};

/// The lines in the order visited, from `first` until a place comes again.
std::vector<std::size_t> visited(void** first, std::span<std::byte> memory) {
  std::vector<std::size_t> order;
  std::set<void**> seen;
  void** place = first;
  for (; seen.insert(place).second; place = static_cast<void**>(*place)) {
    const auto offset = reinterpret_cast<std::byte*>(place) - memory.data();
    EXPECT_GE(offset, 0);
    EXPECT_LT(offset, static_cast<std::ptrdiff_t>(memory.size()));
    EXPECT_EQ(offset % 64, 0);
    order.push_back(static_cast<std::size_t>(offset) / 64);
  }
  EXPECT_EQ(place, first); // a cycle, not a path that ends in a smaller one
  return order;
}

TEST(Chase, IsASingleCycleOverAllLines) {
  constexpr std::uint64_t k_seed = 20260402;
  std::mt19937_64 engine(k_seed);
  for (int round = 0; round < 250; ++round) {
    const std::size_t lines = 1 + engine() % 700;
    const std::size_t region = engine() % 3 == 0 ? 64 * lines : 64 * (1 + engine() % 90);
    SCOPED_TRACE(testing::Message() << "seed " << k_seed << " round " << round << ": " << lines
                                    << " lines, regions of " << region << " B");
    const Lines area(lines);
    void** const first = build_chase(area.memory, region, engine());
    const std::vector<std::size_t> order = visited(first, area.memory);
    EXPECT_EQ(order.size(), lines); // visited() stops at the first repetition: no shorter cycle
  }
}

TEST(Chase, StaysWithinARegionUntilAllOfItWasVisited) {
  constexpr std::size_t k_per_region = 16;
  const Lines area(5 * k_per_region + 3); // the last region is short
  const std::vector<std::size_t> order =
      visited(build_chase(area.memory, 64 * k_per_region, 7), area.memory);
  int changes = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    changes += order[i] / k_per_region != order[i - 1] / k_per_region ? 1 : 0;
  }
  EXPECT_EQ(changes, 5); // six regions, one after another
}

TEST(Chase, HasNoStrideAPrefetcherCouldLearn) {
  constexpr std::size_t k_lines = 4096;
  const Lines area(k_lines);
  const std::vector<std::size_t> order =
      visited(build_chase(area.memory, 64 * k_lines, 7), area.memory);
  // In a random order a step repeats the one before with probability 1 / 4096: expect 1, allow 12.
  int repeated = 0;
  for (std::size_t i = 2; i < order.size(); ++i) {
    repeated += order[i] - order[i - 1] == order[i - 1] - order[i - 2] ? 1 : 0;
  }
  EXPECT_LE(repeated, 12);
}

} // namespace
} // namespace reckon
