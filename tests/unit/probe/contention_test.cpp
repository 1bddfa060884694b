// SPDX-License-Identifier: Apache-2.0
#include "probe/machine_campaigns.hpp"

#include "discover/discover.hpp"
#include "documents/contention.hpp"
#include "fakes.hpp"

#include <gtest/gtest.h>

#include <set>

namespace reckon {
namespace {

/// `nodes` nodes of `cores` cores each.
Topology machine(int nodes, int cores) {
  Topology t;
  test::add(t, "m0", ObjectKind::machine, "");
  for (int n = 0; n < nodes; ++n) {
    const std::string node = "m0/numa" + std::to_string(n);
    TopologyObject& numa = test::add(t, node, ObjectKind::numa_node, "m0");
    numa.bytes = std::uint64_t{1} << 33U;
    numa.os_index = n;
    for (int c = n * cores; c < (n + 1) * cores; ++c) {
      test::add(t, "m0/core" + std::to_string(c), ObjectKind::core, node).cpus = {c};
    }
  }
  return t;
}

TEST(ContentionCampaign, EverythingTogetherIsAlsoMeasuredAlone) {
  for (const auto& [nodes, cores] : {std::pair(1, 1), std::pair(1, 2), std::pair(2, 8)}) {
    test::FakeClock clock;
    Workbench bench(machine(nodes, cores), "m0", clock, 1, {});
    std::set<CellKey> keys;
    std::set<int> threads;
    std::set<std::string> targets;
    bench.measure_thoroughly();
    for (const CellPlan& plan : contention_campaign(bench).plans) {
      EXPECT_TRUE(keys.insert(plan.key).second) << plan.key.text() << " twice";
      threads.insert(plan.key.threads);
      targets.insert(plan.key.to);
    }
    // A quarter of the node's cores, and all of them.
    EXPECT_EQ(threads,
              cores == 1 ? std::set({1}) : std::set({cores / 4 > 0 ? cores / 4 : 1, cores}));
    // Sums stay where they are; copies stay on the node and go to the next.
    EXPECT_EQ(targets, nodes == 1 ? std::set<std::string>({"", "m0/numa0"})
                                  : std::set<std::string>({"", "m0/numa0", "m0/numa1"}));
    for (const CellKey& key : keys) {
      if (const auto twin = alone(key)) {
        EXPECT_TRUE(keys.contains(*twin)) << key.text() << " without " << twin->text();
      }
    }
  }
}

TEST(ContentionCampaign, UsuallyOneSizeAndOneOfEachKind) {
  test::FakeClock clock;
  Workbench bench(machine(2, 8), "m0", clock, 1, {});
  std::set<CellKey> keys;
  for (const CellPlan& plan : contention_campaign(bench).plans) {
    keys.insert(plan.key);
    EXPECT_EQ(plan.key.threads, 2);
    EXPECT_TRUE(plan.key.bytes == 0 || plan.key.bytes == 10U << 20U) << plan.key.text();
  }
  // Two computations alone; a sum and a copy alone, and each with each computation both ways round.
  EXPECT_EQ(keys.size(), 2U + 2 * (1 + 2 * 2));
  for (const CellKey& key : keys) {
    if (const auto twin = alone(key)) {
      EXPECT_TRUE(keys.contains(*twin)) << key.text();
    }
  }
}

TEST(ContentionCampaign, MovesAndComputesTheRightThing) {
  // On this machine, one of each: all data are verified, a mistake would be a mismatch.
  const RunClock clock;
  const Discovery found = discover();
  Workbench bench(found.topology, "m0", clock, 3, {});
  bench.measure_thoroughly();
  bench.limit_memory(64U << 20U);
  const Campaign campaign = contention_campaign(bench);
  campaign.begin();
  std::set<std::string> seen;
  for (const CellPlan& plan : campaign.plans) {
    const std::uint64_t most = plan.key.test == k_contention_compute ? 1U << 20U : 10U << 20U;
    if (plan.key.bytes > most || plan.key.operation == "gemm_1000") {
      continue;
    }
    const Cell cell = test::measured(plan, Seconds(0.01));
    EXPECT_TRUE(cell.has_value() || cell.status == CellStatus::skipped)
        << plan.key.text() << ": " << name_of(cell.status) << ", " << cell.reason;
    if (cell.has_value()) {
      EXPECT_GT(cell.p50, 0) << plan.key.text();
      seen.insert(plan.key.test + (plan.key.sources > 0 ? " sum " : " copy ") + plan.key.operation);
    }
  }
  EXPECT_GE(seen.size(), 10U);
}

TEST(ContentionCampaign, WithoutTheMemoryForItACellSaysSo) {
  const RunClock clock;
  const Discovery found = discover();
  Workbench bench(found.topology, "m0", clock, 3, {});
  bench.measure_thoroughly();
  bench.limit_memory(32U << 20U);
  const Campaign campaign = contention_campaign(bench);
  for (const CellPlan& plan : campaign.plans) {
    if (plan.key.bytes == 100U << 20U) {
      const Cell cell = test::measured(plan, Seconds(0.01));
      EXPECT_EQ(cell.status, CellStatus::skipped);
      EXPECT_NE(cell.reason.find("only 32 MiB"), std::string::npos) << cell.reason;
      return;
    }
  }
  FAIL() << "no cell of 100 MiB";
}

} // namespace
} // namespace reckon
