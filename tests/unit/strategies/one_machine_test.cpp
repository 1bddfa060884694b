// SPDX-License-Identifier: Apache-2.0
// Plans for ranks that share one machine.
#include "fixtures.hpp"

#include "documents/quantity_names.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/play.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using namespace test;

const Workload k_model = one_tensor(16U << 20U); // 64 MiB

TEST(Planner, OneMachineTermsAreBytesOverRates) {
  // 2 workers, colocated, 64 MiB: each sends M/2 up and M/2 back: 2M in all = 128 MiB at 8 GB/s;
  // each sums M/2 of operands: M in all at 10 GB/s.
  const Plan plan = plan_for(one_machine(), k_model, 2, 0, {.strategy = "ps_colocated"});
  const double model = 64.0 * 1024 * 1024;
  ASSERT_EQ(plan.prediction.terms[0].name, "transport");
  EXPECT_NEAR(plan.prediction.terms[0].seconds, 2 * model / 8e9, 1e-9);
  EXPECT_NEAR(plan.prediction.terms[1].seconds, model / 10e9, 1e-9);
}

TEST(Planner, SumsInPlaceAreMemoryTrafficOverItsRate) {
  // 2 workers, 64 MiB: both gradients are read and written, 4 x 64 MiB, at 40 GB/s; the bound at
  // the best rate ever measured, 50 GB/s.
  const double traffic = 4 * 64.0 * 1024 * 1024;
  const Plan plan = plan_for(machine_that_shares(), k_model, 2, 0, {});
  EXPECT_TRUE(plan.sums_in_place);
  EXPECT_NEAR(plan.prediction.mid_seconds, traffic / 40e9, 1e-9);
  EXPECT_NEAR(plan.prediction.bound_seconds, traffic / 50e9, 1e-9);
  EXPECT_THAT(plan.prediction.bound_by, testing::HasSubstr("stream_copy"));
  EXPECT_LE(plan.part_bytes, 1048576U);
}

TEST(Planner, OneServerSumsInPlaceWithOneThread) {
  // It has 2 x 2 x 64 MiB of traffic; one thread of two does 40 GB/s here, and so do both together.
  Profile p = machine_that_shares();
  p.cells[p.cells.size() - 3].p50 = 20e9; // one thread alone
  p.cells[p.cells.size() - 3].samples = {20e9};
  const Plan plan = plan_for(p, k_model, 2, 1, {.strategy = "ps_noncolocated"});
  EXPECT_TRUE(plan.sums_in_place);
  EXPECT_NEAR(plan.prediction.mid_seconds, 4 * 64.0 * 1024 * 1024 / 20e9, 1e-9);
}

TEST(Planner, ProcessorsSumInPlaceWhatAllTheirRanksHave) {
  // Three workers and a server that sums 4/10, the workers 2/10 each. Ranks 0 and 2 have the first
  // of two processors, 4/10 of all, ranks 1 and 3 the second, 6/10: 8/10 are done at the rate of
  // both, 2/10 at that of one.
  Profile p = machine_that_shares();
  p.cells[p.cells.size() - 3].p50 = 30e9; // one thread alone
  p.cells[p.cells.size() - 3].samples = {30e9};
  const Workload model = one_tensor(20U << 20U); // 80 parts
  const Plan plan = plan_for(p, model, 3, 1, {.strategy = "byteps_split"});
  EXPECT_TRUE(plan.sums_in_place);
  const double traffic = 6 * 80.0 * 1024 * 1024;
  EXPECT_NEAR(plan.prediction.mid_seconds, traffic * (0.8 / 40e9 + 0.2 / 30e9), 1e-9);
}

TEST(Planner, APlayOfSumsInPlaceTakesAsLongAsPredictedWhereAllServersSumAlike) {
  const Profile profile = machine_that_shares(); // of two cores
  const auto expect_alike = [&](const char* strategy, std::uint64_t workers,
                                std::uint64_t servers) {
    const Plan plan = plan_for(profile, k_model, workers, servers, {.strategy = strategy});
    ASSERT_TRUE(plan.sums_in_place);
    const PlanNetwork network = network_of(plan, profile);
    const double played = play(lower(plan), network.network, network.cost).total_seconds;
    EXPECT_NEAR(played, plan.prediction.mid_seconds, 0.01 * played) << strategy;
  };
  expect_alike("byteps_split", 2, 0);
  expect_alike("ps_colocated", 4, 0);
  expect_alike("ps_noncolocated", 2, 1);
}

TEST(Planner, SumsInPlaceOnlyWhereTheyCanBe) {
  const auto plan = [](const PlanOptions& options) {
    return plan_for(machine_that_shares(), k_model, 2, 0, options);
  };
  EXPECT_FALSE(plan({.sums_in_place = false}).sums_in_place);
  EXPECT_FALSE(plan({.strategy = "ring"}).sums_in_place);
  EXPECT_FALSE(plan({.optimizer = Optimizer::sgd}).sums_in_place);
  EXPECT_FALSE(plan_for(one_machine(), k_model, 2, 0, {}).sums_in_place); // not measured
  EXPECT_REFUSED(input, "no sum_in_place cells",
                 plan_for(one_machine(), k_model, 2, 0, {.sums_in_place = true}));
  EXPECT_REFUSED(input, "--sums",
                 plan_for(cluster(1e9, 1e9), k_model, 2, 0, {.sums_in_place = true}));
  EXPECT_REFUSED(input, "--sums",
                 plan_for(machine_that_shares(), k_model, 1, 0, {.sums_in_place = true}));
  EXPECT_REFUSED(input, "hands", plan({.strategy = "ring", .sums_in_place = true}));
  EXPECT_REFUSED(input, "--optimizer", plan({.sums_in_place = true, .optimizer = Optimizer::sgd}));
  EXPECT_REFUSED(input, "--reduction fixed:24",
                 plan({.sums_in_place = true, .fixed_point = FixedPointRequest{24, 1}}));
}

TEST(Planner, SumsInPlaceSayWhatMovesAndWhatSendingWouldTake) {
  const auto quantity = [](const Plan& plan, std::string_view name) {
    const auto found = std::ranges::find(plan.quantities, name, &Quantity::name);
    return found == plan.quantities.end() ? 0 : found->value;
  };
  const auto plan = [](std::optional<bool> in_place) {
    return plan_for(machine_that_shares(), k_model, 2, 0,
                    {.strategy = "ps_colocated", .sums_in_place = in_place});
  };
  const Plan taken = plan({});
  ASSERT_TRUE(taken.sums_in_place);
  EXPECT_EQ(quantity(taken, "moved_bytes"), 4 * 64.0 * 1024 * 1024); // as the bound counts
  EXPECT_NEAR(quantity(taken, k_sums_sent_seconds), plan(false).prediction.mid_seconds,
              0.02 * plan(false).prediction.mid_seconds); // a formula there, a play here
  for (const Quantity& q : taken.quantities) {
    EXPECT_THAT(q.equation,
                testing::Not(testing::HasSubstr("fabric_aggregate"))); // nothing is sent
  }
  EXPECT_EQ(quantity(plan(true), k_sums_sent_seconds), 0); // asked for: nothing else was looked at
}

TEST(Planner, NoPredictionIsBelowItsBound) {
  // One thread alone sums at 40 GB/s, so that 16 are taken for 640; the best that was measured of
  // the memory is 50 GB/s: 4 gradients of 64 MiB through it.
  Profile p = machine_that_shares();
  p.machines[0].cores = 16;
  std::erase_if(p.cells,
                [](const Cell& c) { return c.key.test == "sum_in_place" && c.key.threads == 2; });
  const Plan plan = plan_for(p, k_model, 2, 0, {.sums_in_place = true});
  EXPECT_NEAR(plan.prediction.bound_seconds, 4 * 64.0 * 1024 * 1024 / 50e9, 1e-9);
  EXPECT_NEAR(plan.prediction.mid_seconds, plan.prediction.bound_seconds, 1e-9);
  ASSERT_THAT(plan.assumed, testing::Not(testing::IsEmpty()));
  EXPECT_THAT(plan.assumed.back(),
              testing::AllOf(test::Says("sum_in_place"), testing::HasSubstr("(stream_copy)")));
  for (const Candidate& c : plan.candidates) {
    if (c.prediction) {
      EXPECT_GE(c.prediction->mid_seconds, c.prediction->bound_seconds * (1 - 1e-9));
    }
  }
}

TEST(Planner, SumsInPlaceAreTakenOnlyWhereTheyAreFaster) {
  Profile p = machine_that_shares();
  for (std::size_t i = p.cells.size() - 3; i + 1 < p.cells.size(); ++i) {
    p.cells[i].p50 = 4e9;
    p.cells[i].samples = {4e9};
  }
  const Plan sent = plan_for(p, k_model, 2, 0, {});
  EXPECT_FALSE(sent.sums_in_place);
  EXPECT_NE(std::ranges::find(sent.quantities, k_sums_in_place_seconds, &Quantity::name),
            sent.quantities.end());
  EXPECT_TRUE(plan_for(p, k_model, 2, 0, {.sums_in_place = true}).sums_in_place);
}

/// One machine whose last-level cache has that many bytes.
Profile with_cache(Profile p, std::uint64_t bytes) {
  p.topology.objects.push_back({.id = "m0", .kind = ObjectKind::machine});
  p.topology.objects.push_back(
      {.id = "m0/l3", .kind = ObjectKind::cache, .parent = "m0", .cache_level = 3, .bytes = bytes});
  return p;
}

TEST(Planner, WhatFitsIntoTheCachesIsBoundByCachedCopies) {
  // 1 KiB: 2 KiB of gradients in a cache of 32 KiB; a core copies 4 KiB in 40 ns, which is 204.8
  // GB/s of reads and writes, two cores 409.6.
  Profile p = machine_that_shares();
  p.topology.objects.push_back({.id = "m0", .kind = ObjectKind::machine});
  p.topology.objects.push_back(
      {.id = "m0/l1", .kind = ObjectKind::cache, .parent = "m0", .cache_level = 1, .bytes = 32768});
  add_time(p,
           {.test = "host_memcpy",
            .from = "m0",
            .to = "m0",
            .bytes = 4096,
            .threads = 1,
            .state = "warm"},
           40e-9);
  const Plan plan = plan_for(p, one_tensor(256), 2, 0, {});
  EXPECT_NEAR(plan.prediction.bound_seconds, 4 * 1024 / 409.6e9, 1e-15);
  EXPECT_THAT(plan.prediction.bound_by, testing::HasSubstr("caches"));
}

TEST(Planner, CopiesInACacheBoundOnlyDataThatFitsIntoItInEachCore) {
  // Two gradients of 16 MiB on two cores, 16 MiB each, in a last-level cache of 64 MiB: as much as
  // a copy of 8 MiB reads and writes. Between 6 and 12 MiB that may be as fast as with 6; that 4
  // KiB are copied in 40 ns from the first level says nothing of it, nor do 48 MiB from memory.
  Profile p = with_cache(machine_that_shares(), 64U << 20U); // 50 GB/s of memory traffic
  const auto copy = [&](std::uint64_t bytes, double bytes_per_s) {
    add_time(p,
             {.test = "host_memcpy",
              .from = "m0",
              .to = "m0",
              .bytes = bytes,
              .threads = 1,
              .state = "warm"},
             static_cast<double>(bytes) / bytes_per_s);
  };
  copy(4096, 102.4e9);
  copy(6U << 20U, 20e9);
  copy(12U << 20U, 15e9);
  copy(48U << 20U, 7e9);
  const auto bound = [&](std::uint64_t mib) {
    return plan_for(p, one_tensor(mib << 18U), 2, 0, {}).prediction.bound_seconds;
  };
  const double traffic = 4 * (16U << 20U); // two gradients, each read and written
  EXPECT_NEAR(bound(16), traffic / (2 * 2 * 20e9), 1e-12);
  // Of 30 MiB each core has what a copy of 15 MiB has; 80 MiB are not in the cache.
  EXPECT_NEAR(bound(30), traffic / 16 * 30 / (2 * 2 * 15e9), 1e-12);
  EXPECT_NEAR(bound(40), traffic / 16 * 40 / 50e9, 1e-12);
  EXPECT_THAT(plan_for(p, one_tensor(40U << 18U), 2, 0, {}).prediction.bound_by,
              testing::HasSubstr("memory"));
}

TEST(Planner, RanksOfAMachineHaveTwoPartsUnderWayForEachThatCanWorkAtOnce) {
  const auto window = [](std::uint64_t cores, int ranks, const char* strategy) {
    Profile p = one_machine(); // without a latency: nothing is on the way
    p.machines.front().cores = cores;
    const PlanOptions options{.strategy = strategy, .part_bytes = 65536, .sums_in_place = false};
    return plan_for(p, one_tensor(16U << 20U), static_cast<std::uint64_t>(ranks), 0, options)
        .window_parts;
  };
  EXPECT_EQ(window(2, 2, "ps_colocated"), 4);
  EXPECT_EQ(window(2, 8, "ps_colocated"), 4); // two work at once
  EXPECT_EQ(window(16, 8, "ps_colocated"), 16);
  EXPECT_EQ(window(16, 8, "ring"), 16);
  EXPECT_EQ(window(1, 8, "ps_colocated"), 4); // written, summed, on its way back, to spare
}

/// How long the writes of a plan of one machine take, without sums and fill.
double transport_seconds(const Plan& plan) {
  return plan.prediction.terms.at(0).seconds;
}

TEST(Planner, RanksThatShareAProcessorTakeTurnsOnIt) {
  // Two processors write 8 GB/s and add up 10 together, one of them 5 and 5 alone. In a ring of
  // three each rank writes 4/3 of the gradient and adds up 2/3 of it. While the processor of rank 1
  // does that, the other one does half of what ranks 0 and 2 have: each writes at 4 and adds up at
  // 5. The other half it does alone. Of four ranks each processor has two: all write 6 and add
  // up 3.
  Profile p = one_machine();
  add_rate(p,
           {.test = "fabric_aggregate",
            .from = "m0",
            .to = "m0",
            .bytes = 65536,
            .threads = 1,
            .pairs = 1,
            .transport = "host",
            .direction = "two_way"},
           5e9);
  const Workload model = one_tensor(12U << 20U); // 768 parts, equal shares for three and four
  constexpr double k_bytes = 48.0 * 1024 * 1024;
  const auto plan = [&](std::uint64_t workers) {
    return plan_for(p, model, workers, 0, {.strategy = "ring", .part_bytes = 65536});
  };
  EXPECT_NEAR(transport_seconds(plan(3)), (4 / 3.0 / 4e9 + 4 / 3.0 / 5e9) * k_bytes, 1e-9);
  EXPECT_NEAR(plan(3).prediction.terms.at(1).seconds, 4 / 3.0 * k_bytes / 5e9, 1e-9);
  EXPECT_NEAR(transport_seconds(plan(4)), 6 * k_bytes / 8e9, 1e-9);
}

} // namespace
} // namespace reckon
