// SPDX-License-Identifier: Apache-2.0
#include "simulate/prepare.hpp"

#include "fixtures.hpp"
#include "simulate/coarsen.hpp"
#include "simulate/fold.hpp"
#include "strategies/lower.hpp"
#include "support/refusals.hpp"

#include <numeric>

namespace reckon {
namespace {

using namespace test;

/// 6 workers that push 40 parts to 3 servers; a server's sum takes time for each source.
struct Servers {
  Plan plan =
      plan_of("ps_noncolocated", 6, 3, 40, 1'000'000, 6, [](std::uint64_t p) { return 6 + p % 3; });
  SimNetwork network = ports(9, 1e9, 1e-5);
  Servers() {
    network.op_seconds = [](std::size_t rank, const Op& op) {
      return 1e-5 * static_cast<double>(op.source_count) * (rank == 7 ? 3 : 1);
    };
  }
};

SimResult played(const PreparedPlan& prepared) {
  return simulate(prepared.graph, k_simulator, [](std::uint64_t) {});
}

TEST(Prepare, RanksThatDoTheSameAreFoldedWithTheSameResult) {
  RECKON_NEEDS_SIMULATOR();
  const Servers servers;
  PrepareOptions options;
  const PreparedPlan folded = prepare(servers.plan, lower, servers.network, {}, options);
  EXPECT_EQ(folded.schedule.ranks.size(), 2U + 3U); // 6 workers by 2
  EXPECT_EQ(folded.representative, (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1, 2, 3, 4}));
  options.fold = false;
  const PreparedPlan whole = prepare(servers.plan, lower, servers.network, {}, options);
  EXPECT_EQ(whole.schedule.ranks.size(), 9U);
  const SimResult few = played(folded), all = played(whole);
  EXPECT_NEAR(few.seconds, all.seconds, 1e-6 * all.seconds);
  for (std::size_t r = 0; r < 9; ++r) {
    EXPECT_NEAR(few.lane_seconds[folded.representative[r]], all.lane_seconds[r], 1e-6 * all.seconds)
        << "rank " << r;
  }
}

TEST(Prepare, ARankThatAScenarioNamesStandsForItself) {
  RECKON_NEEDS_SIMULATOR();
  const Servers servers;
  const Scenario scenario = scenario_of({{"rank=1:0.25"}, {}, {"0->7:0.2GB/s"}}, servers.network);
  PrepareOptions options;
  const PreparedPlan folded = prepare(servers.plan, lower, servers.network, scenario, options);
  EXPECT_EQ(folded.schedule.ranks.size(), 2U + 2U + 3U); // 0, 1, and 4 others by 2
  options.fold = false;
  const PreparedPlan whole = prepare(servers.plan, lower, servers.network, scenario, options);
  const SimResult few = played(folded), all = played(whole);
  EXPECT_NEAR(few.seconds, all.seconds, 1e-6 * all.seconds);
}

TEST(Prepare, ARankThatIsFartherAwayIsNotFoldedWithNearOnes) {
  // Of six workers the last two are farther from rank 8, and the four others are played by two.
  Servers servers;
  servers.network.stations.path_latency_s.assign(9, std::vector<double>(9, 1e-5));
  for (const std::size_t far : {4U, 5U}) {
    servers.network.stations.path_latency_s[far][8] = 1e-3;
  }
  const FoldedPlan folded = fold_ranks(servers.plan, lower, servers.network, {});
  EXPECT_EQ(folded.representative, (std::vector<std::uint32_t>{0, 1, 0, 1, 2, 3, 4, 5, 6}));
}

TEST(Prepare, AStragglerIsPlayedByItselfAlone) {
  // Besides rank 1 five are alike, which is no multiple of less; besides ranks 1 and 2 four, which
  // two play.
  const Servers servers;
  const auto folded = [&](const std::vector<std::string>& stragglers) {
    return fold_ranks(servers.plan, lower, servers.network,
                      scenario_of({{}, stragglers, {}}, servers.network))
        .representative;
  };
  EXPECT_EQ(folded({"1=2x"}), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(folded({"1=2x", "2=2x"}), (std::vector<std::uint32_t>{0, 1, 2, 3, 0, 3, 4, 5, 6}));
}

TEST(Prepare, RanksOfARingAreNotAlike) {
  // Ranks 4 to 7 have no part of their own, but each has other neighbours.
  const Plan plan = plan_of("ring", 8, 0, 8, 1000, 8, [](std::uint64_t p) { return p % 4; });
  EXPECT_EQ(fold_ranks(plan, lower, ports(8, 1e9), {}).rank.size(), 8U);
}

TEST(Coarsen, MergesNeighboursOfOneServerAndKeepsTheBytes) {
  const Plan plan =
      plan_of("ps_noncolocated", 2, 2, 9, 100, 8, [](std::uint64_t p) { return 2 + p % 2; });
  const Plan merged = with_merged_parts(plan, 2).plan;
  // Server 2 has parts 0 2 4 6 8, server 3 has 1 3 5 7: 0+2, 1+3, 4+6, 5+7, 8.
  EXPECT_EQ(merged.parts.bytes, (std::vector<std::uint64_t>{200, 200, 200, 200, 100}));
  EXPECT_EQ(merged.parts.server, (std::vector<std::uint64_t>{2, 3, 2, 3, 2}));
  // They end where the last of them does: parts 2, 3, 6, 7 and 8.
  EXPECT_EQ(merged.parts.offset_bytes, (std::vector<std::uint64_t>{100, 200, 500, 600, 800}));
  EXPECT_EQ(merged.window_parts, 8U);
  EXPECT_EQ(merged.part_bytes, 200U);
  // 4.5 parts a server become 2.5; 8 of 9 parts under way become all.
  EXPECT_NEAR(merging_error(plan, merged), 1 / 2.5 - 1 / 4.5 + 3 * (1 - 8.0 / 9), 1e-12);
  EXPECT_EQ(with_merged_parts(plan, 100).plan.parts.bytes, (std::vector<std::uint64_t>{500, 400}));
  EXPECT_EQ(with_merged_parts(plan, 1).plan, plan);
}

TEST(Coarsen, MergingAddsWhatItIsExpectedTo) {
  RECKON_NEEDS_SIMULATOR();
  // All parts under way: T (1 + 1/m) of closed_forms_test.cpp, with m 100 and then 10.
  const Plan plan = plan_of("ps_noncolocated", 4, 2, 200, 1'000'000, 200,
                            [](std::uint64_t p) { return 4 + p % 2; });
  PrepareOptions options;
  options.merge = 1;
  const double fine = played(prepare(plan, lower, ports(6, 1e9), {}, options)).seconds;
  options.merge = 10;
  const PreparedPlan merged = prepare(plan, lower, ports(6, 1e9), {}, options);
  EXPECT_NEAR(played(merged).seconds / fine, 1.1 / 1.01, 0.001);
  EXPECT_NEAR(merged.merging_error, 0.09, 1e-12);
}

TEST(Coarsen, AMergedWriteCostsWhatItsOwnDoHoweverManyWereAskedFor) {
  RECKON_NEEDS_SIMULATOR();
  // 5 and 4 parts become one each. Each write takes as long again as its bytes.
  const Plan plan =
      plan_of("ps_noncolocated", 2, 2, 9, 1'000'000, 9, [](std::uint64_t p) { return 2 + p % 2; });
  SimNetwork network = ports(4, 1e9);
  network.write_overhead_s = 1e-3;
  PrepareOptions options;
  options.merge = 1;
  const double fine = played(prepare(plan, lower, network, {}, options)).seconds;
  options.merge = 1000;
  const PreparedPlan merged = prepare(plan, lower, network, {}, options);
  EXPECT_EQ(merged.network.merged, (std::vector<std::uint32_t>{5, 4}));
  EXPECT_LE(played(merged).seconds / fine, 1 + merged.merging_error);
}

TEST(Coarsen, ANarrowWindowStaysAsDeep) {
  RECKON_NEEDS_SIMULATOR();
  // 8 servers with 60 parts each, 16 under way: two a server keep all ports busy, before and after.
  const Plan plan = plan_of("ps_noncolocated", 4, 8, 480, 1'000'000, 16,
                            [](std::uint64_t p) { return 4 + p % 8; });
  PrepareOptions options;
  options.merge = 1;
  const double fine = played(prepare(plan, lower, ports(12, 1e9), {}, options)).seconds;
  for (const std::uint64_t factor : {2U, 4U}) {
    options.merge = factor;
    const PreparedPlan merged = prepare(plan, lower, ports(12, 1e9), {}, options);
    EXPECT_LE(played(merged).seconds / fine, 1 + merged.merging_error) << factor;
    EXPECT_GE(played(merged).seconds / fine, 0.999) << factor;
  }
}

TEST(Prepare, WhatDoesNotFitTheBudgetIsMergedOrRefused) {
  const Servers servers;
  PrepareOptions options;
  options.budget_seconds =
      prepare(servers.plan, lower, servers.network, {}, options).cost_seconds * 0.6;
  const PreparedPlan merged = prepare(servers.plan, lower, servers.network, {}, options);
  EXPECT_GT(merged.merged_parts, 1U);
  EXPECT_LE(merged.cost_seconds, options.budget_seconds);
  options.merge = 1;
  EXPECT_ERROR(prepare(servers.plan, lower, servers.network, {}, options));
  options.merge.reset();
  options.budget_seconds = 1e-9;
  EXPECT_ERROR(prepare(servers.plan, lower, servers.network, {}, options));
}

} // namespace
} // namespace reckon
