// SPDX-License-Identifier: Apache-2.0
#include "probe/workbench.hpp"

#include "discover/discover.hpp"
#include "fakes.hpp"
#include "probe/pattern.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace reckon {
namespace {

using test::FakeClock;

/// Two nodes of two cores each, every node with an L3 of 8 MiB, and a third node that is only
/// memory and comes first.
Topology two_nodes() {
  Topology t;
  test::add(t, "m0", ObjectKind::machine, "");
  for (int n = 0; n < 3; ++n) {
    const std::string node = "m0/numa" + std::to_string(n);
    TopologyObject& numa = test::add(t, node, ObjectKind::numa_node, "m0");
    numa.bytes = 1 << 30U;
    numa.os_index = n;
    if (n == 0) {
      continue;
    }
    numa.cpus = {2 * n - 2, 2 * n - 1};
    const std::string id = "m0/l3-" + std::to_string(n - 1);
    TopologyObject& cache = test::add(t, id, ObjectKind::cache, node);
    cache.cache_level = 3;
    cache.bytes = 8 << 20U;
    for (int core = 2 * n - 2; core < 2 * n; ++core) {
      test::add(t, "m0/core" + std::to_string(core), ObjectKind::core, id).cpus = {core};
    }
  }
  return t;
}

TEST(Workbench, KnowsWhichCoresAreNearWhichMemory) {
  FakeClock clock;
  const Workbench bench(two_nodes(), "m0", clock, 1, {});
  ASSERT_EQ(bench.nodes().size(), 3U);
  EXPECT_EQ(bench.nodes()[0].id, "m0/numa1"); // the one without cores comes last
  EXPECT_EQ(bench.nodes()[1].id, "m0/numa2");
  EXPECT_EQ(bench.nodes()[2].id, "m0/numa0");
  EXPECT_EQ(bench.nodes()[0].cpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(bench.nodes()[1].cpus, (std::vector<int>{2, 3}));
  EXPECT_TRUE(bench.nodes()[2].cpus.empty());
  EXPECT_EQ(bench.cpus_near(1, 1), std::vector<int>{2});
  EXPECT_EQ(bench.cpus_near(2, 9), (std::vector<int>{0, 1})); // somebody has to
  ASSERT_EQ(bench.cores().size(), 4U);
  EXPECT_EQ(bench.cores()[3].node, 1U);
}

TEST(Workbench, SpreadsFewThreadsOverAllMemories) {
  FakeClock clock;
  const Workbench bench(two_nodes(), "m0", clock, 1, {});
  const auto cpus = [&](int threads) {
    std::vector<int> list;
    for (const CorePlace& core : bench.spread(threads)) {
      list.push_back(core.cpu);
    }
    return list;
  };
  EXPECT_EQ(cpus(1), std::vector<int>{0});
  EXPECT_EQ(cpus(2), (std::vector<int>{0, 2}));
  EXPECT_EQ(cpus(3), (std::vector<int>{0, 2, 1}));
  EXPECT_EQ(cpus(4), (std::vector<int>{0, 2, 1, 3}));
}

TEST(Workbench, TheColdFootprintFollowsTheLastLevelCache) {
  FakeClock clock;
  Topology t = two_nodes();
  // 8 MiB: twice that is below the least, 256 MiB.
  EXPECT_EQ(Workbench(t, "m0", clock, 1, {}).cold_bytes(0), 256U << 20U);
  for (TopologyObject& object : t.objects) {
    if (object.kind == ObjectKind::cache) {
      object.bytes = 200U << 20U;
    }
  }
  const Workbench bench(t, "m0", clock, 1, {});
  EXPECT_EQ(bench.cold_bytes(0), (400U << 20U) * bench.nodes()[0].caches);
}

TEST(Workbench, ThoroughlyAllPowersOfTwoThreads) {
  FakeClock clock;
  Workbench bench(two_nodes(), "m0", clock, 1, {});
  EXPECT_EQ(bench.thread_counts(), (std::vector<int>{1, 4}));
  bench.measure_thoroughly();
  EXPECT_EQ(bench.thread_counts(), (std::vector<int>{1, 2, 4}));
}

TEST(Workbench, RefusesAMachineWithoutCores) {
  FakeClock clock;
  Topology t = two_nodes();
  std::erase_if(t.objects, [](const TopologyObject& o) { return o.kind == ObjectKind::core; });
  EXPECT_REFUSED(unavailable, "no core", Workbench(t, "m0", clock, 1, {}));
}

TEST(Workbench, KeepsMemoryAsLongAsItIsLongEnough) {
  const RunClock clock;
  Workbench bench(discover_topology(), "m0", clock, 1, {});
  std::byte* const first = bench.memory(0, 0, 4 << 20U).data();
  EXPECT_EQ(bench.memory(0, 0, 2 << 20U).data(), first);
  EXPECT_NE(bench.memory(0, 1, 2 << 20U).data(), first);
  EXPECT_GE(bench.memory(0, 0, 8 << 20U).size(), 8U << 20U);
  EXPECT_THAT(
      test::refusal([&] { return bench.memory(0, 0, 1ULL << 60U); }, ErrorKind::unavailable),
      testing::HasSubstr("1024 PiB"));
}

TEST(Workbench, WithLessMemoryThanItShouldHaveItSaysSo) {
  const RunClock clock;
  Workbench bench(discover_topology(), "m0", clock, 1, {});
  bench.limit_memory(32U << 20U);
  EXPECT_EQ(bench.cold_bytes(0), 32U << 20U);
  static_cast<void>(bench.memory(0, 0, bench.cold_bytes(0)));
  Cell cell;
  cell.key.state = "cold";
  bench.remark_placement(cell, 0, 0);
  EXPECT_EQ(cell.status, CellStatus::noisy);
  EXPECT_NE(cell.reason.find("only 32 MiB"), std::string::npos) << cell.reason;
  Cell warm;
  bench.remark_placement(warm, 0, 0);
  EXPECT_EQ(warm.status, CellStatus::ok);
}

TEST(Fill, PatternsDifferByPlaceAndSalt) {
  std::vector<std::byte> a(4096);
  std::vector<std::byte> b(4096);
  fill_with_pattern(a, 1);
  fill_with_pattern(b, 2);
  std::size_t same = 0;
  for (std::size_t i = 0; i < a.size(); i += 8) {
    same += std::memcmp(a.data() + i, b.data() + i, 8) == 0 ? 1U : 0U;
    same += i >= 8 && std::memcmp(a.data() + i, a.data() + i - 8, 8) == 0 ? 1U : 0U;
  }
  EXPECT_EQ(same, 0U);
}

TEST(Fill, NumbersAreOrdinaryInEveryType) {
  std::vector<std::byte> memory(64);
  fill_numbers(memory);
  float wide = 0;
  std::uint16_t half = 0;
  std::memcpy(&wide, memory.data(), 4);
  std::memcpy(&half, memory.data(), 2);
  EXPECT_EQ(std::fpclassify(wide), FP_NORMAL);
  // fp16: 5 bits of exponent above 10; bf16: 8 above 7. Neither all zeros nor all ones.
  EXPECT_NE(half >> 10U & 0x1fU, 0U);
  EXPECT_NE(half >> 10U & 0x1fU, 0x1fU);
  EXPECT_NE(half >> 7U & 0xffU, 0U);
  EXPECT_NE(half >> 7U & 0xffU, 0xffU);
}

} // namespace
} // namespace reckon
