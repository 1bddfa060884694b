// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/json.hpp"
#include "schedule/checker.hpp"
#include "strategies/forest/planner.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"
#include "support/inside_profiles.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

Plan plan_of(const Profile& profile, const Workload& workload, const InsidePlanOptions& options) {
  return plan_inside({profile, workload, {"p", digest_of("p")}, {"w", digest_of("w")}}, options);
}

const Workload k_model = one_tensor(16U << 20U); // 64 MiB

TEST(PlanInside, ThePapersPcieMachineSendsWhatEquationsEightAndNineSay) {
  InsidePlanOptions options;
  options.inside.network = 1;
  options.plan.part_bytes = 1U << 20U;
  const Plan plan = plan_of(shipped_profile("byteps-pcie"), k_model, options);
  EXPECT_EQ(plan.strategy, "cpu_assisted_numa0");
  ASSERT_THAT(check(lower(plan)).faults, IsEmpty());
  // n = 4 GPUs a switch: each moves (2n-1)/n M one way, the CPU gets M from each switch.
  const auto m = static_cast<double>(plan.gradient_bytes);
  const Traffic traffic = traffic_of(lower(plan));
  for (std::size_t gpu = 0; gpu < 8; ++gpu) {
    EXPECT_NEAR(static_cast<double>(traffic.egress_bytes[gpu]), 7.0 / 4 * m, 1);
    EXPECT_NEAR(static_cast<double>(traffic.ingress_bytes[gpu]), 7.0 / 4 * m, 1);
  }
  EXPECT_EQ(traffic.ingress_bytes[8], 2 * plan.gradient_bytes);
  // 7/4 M over a GPU's link of 105 Gb/s is the steady part of the time.
  EXPECT_NEAR(plan.prediction.terms[0].seconds, 7.0 / 4 * m / (105e9 / 8), 1e-6);
}

/// A GPU behind a host bridge, 55 GB/s each way, and the NUMA node there.
Profile gpu_and_memory() {
  Profile profile = empty_profile("one");
  profile.machines.push_back({.id = "m0", .name = "one"});
  add_object(profile, ObjectKind::machine, "m0", "");
  add_object(profile, ObjectKind::numa_node, "m0/numa0", "m0");
  add_object(profile, ObjectKind::host_bridge, "m0/bridge0", "m0/numa0");
  add_object(profile, ObjectKind::gpu, "m0/gpu0", "m0/bridge0");
  add_link_both_ways(profile, "m0/gpu0", "m0/bridge0", 55e9);
  return profile;
}

TEST(PlanInside, PartsAreAsLongAsWhatAWriteCostsAsksFor) {
  Profile profile = gpu_and_memory();
  for (const auto& [from, to] : {std::pair("m0/gpu0", "m0/numa0"), {"m0/numa0", "m0/gpu0"}}) {
    for (const auto& [test, bytes, seconds] : {std::tuple("pair_latency", 8U, 20e-6),
                                               {"pair_write", 65536U, 25e-6},
                                               {"pair_write", 1048576U, 40e-6}}) {
      add_time(profile,
               {.test = test,
                .from = from,
                .to = to,
                .bytes = bytes,
                .transport = "cuda",
                .direction = "one_way"},
               seconds);
    }
  }
  InsidePlanOptions options;
  options.inside.workers = {"m0/gpu0", "m0/numa0"};
  options.plan.strategy = "reduce_broadcast_gpu0";
  const Plan plan = plan_of(profile, k_model, options);
  ASSERT_THAT(check(lower(plan)).faults, IsEmpty());
  EXPECT_EQ(plan.transport, "cuda");
  // 64 MiB go to the GPU and come back, a part's way back beside the next one's way there: 20 us,
  // all parts, 20 us, the last part. A part keeps the way busy for b / 55 GB/s, or for what a write
  // of it takes beside the latency: 5 us up to 64 KiB in proportion, 20 us with 1 MiB, and from
  // there on 15 us for 983040 B. In us:
  //   64 KiB: 40 + 1024 * 5 + 5 = 5165          1 MiB: 40 + 64 * 20 + 20 = 1340
  //   2 MiB: 40 + 1220.2 + 38.1 = 1298.3        4 MiB: 40 + 1220.2 + 76.3 = 1336.4
  EXPECT_EQ(plan.part_bytes, 2U << 20U);
  EXPECT_NEAR(plan.prediction.mid_seconds, 1298.3e-6, 1e-6);
  // With half of the parts summed at either end both ways are busy from the beginning on.
  options.plan.strategy = "auto";
  const Plan best = plan_of(profile, k_model, options);
  EXPECT_EQ(best.part_bytes, 2U << 20U);
  EXPECT_NEAR(best.prediction.mid_seconds, 20e-6 + 1220.2e-6, 1e-6);
  // Whoever plays the plan finds the same network.
  const PlanNetwork network = network_of(plan, profile);
  EXPECT_NEAR(network.network.write_seconds(0, 1, 65536), 25e-6, 1e-12);
  EXPECT_NEAR(network.network.write_seconds(1, 0, 65536), 25e-6, 1e-12);
}

TEST(PlanInside, WhereNothingSaysWhatAWriteCostsPartsAreNotTiny) {
  Profile profile = gpu_and_memory();
  InsidePlanOptions options;
  options.inside.workers = {"m0/gpu0", "m0/numa0"};
  options.plan.strategy = "reduce_broadcast_gpu0";
  const auto says = [](const Plan& plan) {
    return std::ranges::count_if(plan.assumed, [](const std::string& line) {
      return line.starts_with("writes cost nothing besides their bytes");
    });
  };
  // 10 us of 55 GB/s are 550 kB, and 1 MiB is the next size; what it costs is in no time.
  const Plan plan = plan_of(profile, k_model, options);
  EXPECT_EQ(plan.part_bytes, 1U << 20U);
  EXPECT_EQ(says(plan), 1);
  EXPECT_NEAR(plan.prediction.mid_seconds, 65.0 * (1U << 20U) / 55e9, 1e-6);
  options.plan.part_bytes = 1U << 16U;
  EXPECT_EQ(plan_of(profile, k_model, options).part_bytes, 1U << 16U);
  EXPECT_EQ(says(plan_of(profile, k_model, options)), 0);
  // Of one way it is known to be next to nothing, then of both.
  options.plan.part_bytes.reset();
  const auto know = [&](const char* from, const char* to) {
    add_time(profile,
             {.test = "pair_write", .from = from, .to = to, .bytes = 4096, .transport = "cuda"},
             4096 / 50e9);
  };
  know("m0/gpu0", "m0/numa0");
  EXPECT_EQ(says(plan_of(profile, k_model, options)), 1);
  know("m0/numa0", "m0/gpu0");
  EXPECT_EQ(says(plan_of(profile, k_model, options)), 0);
  EXPECT_LT(plan_of(profile, k_model, options).part_bytes, 1U << 20U);
}

TEST(PlanInside, ThePapersNvlinkMachineLeavesTheSwitchOfTheNicAlone) {
  InsidePlanOptions options;
  options.inside.network = 1;
  const Profile profile = shipped_profile("byteps-nvlink");
  const Plan plan = plan_of(profile, k_model, options);
  EXPECT_EQ(plan.strategy, "reduce_broadcast_gpu2_gpu3");
  ASSERT_THAT(check(lower(plan)).faults, IsEmpty());
  for (const SumTree& tree : plan.trees) { // GPUs 0 and 1 hang from the NIC's switch
    for (const std::size_t gpu : {0U, 1U}) {
      EXPECT_FALSE(
          plan.ranks[static_cast<std::size_t>(tree.up[gpu])].endpoint.starts_with("m0/numa"));
    }
  }
}

TEST(PlanInside, OnRandomMachinesPlansAreProvedReadBackAndNeverBeatTheirBound) {
  std::size_t mixes = 0;
  for_cases(1, 200, [&](Random& random) {
    const Profile profile = random_inside_profile(random, 5);
    const InsidePlanOptions options{
        .lanes = random.whole(1, 3),
        .plan = {.part_bytes = 256U << 10U, .window_parts = random.whole(1, 8)}};
    const Workload model = workload({{"a", 700'001, DType::fp32}, {"b", 99'999, DType::fp16}});
    const Plan plan = plan_of(profile, model, options);
    mixes += plan.trees.size() > 1 ? 1U : 0U;
    ASSERT_THAT(check(lower(plan)).faults, IsEmpty());
    const std::string text = canonical_text(plan);
    EXPECT_EQ(canonical_text(plan_from_json(parse_json(text, "p"), "p")), text);
    // What the parts put on each link is what the solved shares say, but for whole parts.
    double share = 0;
    for (const SumTree& tree : plan.trees) {
      share += tree.share;
    }
    EXPECT_NEAR(share, 1, 1e-6);
    std::vector<double> given(plan.trees.size(), 0);
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      given[plan.parts.tree[p]] += static_cast<double>(plan.parts.bytes[p]);
    }
    for (std::size_t t = 0; t < given.size(); ++t) {
      EXPECT_NEAR(given[t], plan.trees[t].share * static_cast<double>(plan.gradient_bytes),
                  3.0 * static_cast<double>(plan.part_bytes));
    }
  });
  EXPECT_GT(mixes, 50U);
}

TEST(PlanInside, TheRangeIsThatOfTheSamples) {
  InsidePlanOptions options;
  options.inside.network = 1;
  options.plan.part_bytes = 1U << 20U;
  Profile profile = shipped_profile("byteps-pcie");
  const Plan single = plan_of(profile, k_model, options);
  EXPECT_EQ(single.prediction.lo_seconds, single.prediction.mid_seconds);
  EXPECT_EQ(single.prediction.hi_seconds, single.prediction.mid_seconds);
  options.inside.network = 0; // a mix, whose shares are rounded: still no range
  for (const Candidate& c : plan_of(profile, k_model, options).candidates) {
    EXPECT_EQ(c.prediction->lo_seconds, c.prediction->hi_seconds) << c.strategy;
  }
  options.inside.network = 1;
  // Five samples from 0.8 to 1.2 of the median: the 10th percentile is at 0.4 of the first step,
  // 0.84, the 90th at 1.16. All capacities move alike, so all times do.
  for (Cell& cell : profile.cells) {
    for (const double factor : {0.8, 0.9, 1.0, 1.1, 1.2}) {
      cell.samples.push_back(factor * cell.p50);
    }
  }
  const Plan plan = plan_of(profile, k_model, options);
  EXPECT_EQ(plan.prediction.mid_seconds, single.prediction.mid_seconds);
  constexpr double k_rounding = 1e-9;
  EXPECT_NEAR(plan.prediction.lo_seconds * 1.16, plan.prediction.mid_seconds, k_rounding);
  EXPECT_NEAR(plan.prediction.hi_seconds * 0.84, plan.prediction.mid_seconds, k_rounding);
  EXPECT_NEAR(plan.prediction.bound_seconds * 1.16, single.prediction.bound_seconds, k_rounding);
  EXPECT_LE(plan.prediction.bound_seconds, plan.prediction.lo_seconds);
  for (const Candidate& c : plan.candidates) {
    EXPECT_NEAR(c.prediction->lo_seconds * 1.16, c.prediction->mid_seconds, k_rounding);
    EXPECT_NEAR(c.prediction->hi_seconds * 0.84, c.prediction->mid_seconds, k_rounding);
  }
}

TEST(PlanInside, RolesSayWhichGpuWorksAndWhichStandsForAMemoryDevice) {
  InsidePlanOptions options;
  options.inside.workers = {"m0/gpu0", "m0/gpu1"};
  options.inside.relays = std::vector<std::string>{"m0/gpu4"};
  options.plan.part_bytes = 1U << 20U;
  const Plan plan = plan_of(shipped_profile("byteps-pcie"), k_model, options);
  std::vector<std::string> workers;
  for (const PlanRank& rank : plan.ranks) {
    EXPECT_FALSE(rank.endpoint.starts_with("m0/numa"));
    if (rank.worker) {
      workers.push_back(rank.endpoint);
    }
  }
  EXPECT_THAT(workers, ElementsAre("m0/gpu0", "m0/gpu1"));
}

TEST(PlanInside, ALoneWorkerAndAProfileWithoutATreeAreErrors) {
  const Profile profile = shipped_profile("byteps-pcie");
  const auto plan = [&](const std::vector<std::string>& workers) {
    return plan_of(profile, k_model, {.inside = {.workers = workers}});
  };
  EXPECT_REFUSED(input, "topology", plan_of(cluster(1e9, 1e9), k_model, {}));
  EXPECT_REFUSED(input, "m0/gpu0", plan({"m0/gpu0"}));
  EXPECT_REFUSED(input, "m0/gpu9", plan({"m0/gpu0", "m0/gpu9"}));
}

TEST(PlanInside, WhatHasNoKnownRateIsSaidAndNothingIsPredictedFromNothing) {
  const InsidePlanOptions options{.plan = {.part_bytes = 1U << 20U}};
  // Its host bridges' ways to the processors have none, which is no news.
  Profile profile = shipped_profile("byteps-pcie");
  EXPECT_THAT(plan_of(profile, k_model, options).assumed,
              testing::ElementsAre(test::Says("gpu0-7")));
  // Without rates of the memories and of the way between them: both directions of that link, and
  // the NUMA nodes that the plan sums on.
  std::erase_if(profile.cells, [](const Cell& cell) {
    return cell.key.test.starts_with("memory_") || cell.key.test == "reduce_sum" ||
           cell.key.from.starts_with("m0/numa");
  });
  const Plan plan = plan_of(profile, k_model,
                            {.plan = {.strategy = "cpu_assisted_all", .part_bytes = 1U << 20U}});
  const auto nodes = std::count_if(plan.ranks.begin(), plan.ranks.end(), [](const PlanRank& rank) {
    return rank.endpoint_kind == "numa_node";
  });
  ASSERT_GT(nodes, 0);
  ASSERT_EQ(plan.assumed.size(), 3U);
  EXPECT_TRUE(plan.assumed[0].starts_with("no rate is known of numa0 > numa1, numa1 > numa0, "))
      << plan.assumed[0];
  EXPECT_NE(plan.assumed[0].find("topology.links"), std::string::npos);
  EXPECT_TRUE(plan.assumed[1].starts_with("no rate is known of the memory and sums of numa"))
      << plan.assumed[1];
  EXPECT_NE(plan.assumed[1].find("reduce_sum"), std::string::npos);
  EXPECT_GT(plan.prediction.mid_seconds, 0);

  // A GPU's own link: the field that says it, and of which object.
  Profile one = shipped_profile("byteps-pcie");
  for (TopologyObject& object : one.topology.objects) {
    if (object.id == "m0/gpu0") {
      object.pcie.reset();
      object.pcie_bytes_per_second.reset();
    }
  }
  std::erase_if(one.cells, [](const Cell& cell) {
    return cell.key.from == "m0/gpu0" || cell.key.to == "m0/gpu0";
  });
  const Plan without = plan_of(one, k_model, options);
  ASSERT_EQ(without.assumed.size(), 2U);
  EXPECT_NE(without.assumed[0].find("give m0/gpu0 in topology.objects a pcie_bytes_per_second"),
            std::string::npos)
      << without.assumed[0];

  profile.cells.clear();
  for (TopologyObject& object : profile.topology.objects) {
    object.pcie.reset();
    object.pcie_bytes_per_second.reset();
  }
  EXPECT_REFUSED(input, "known", plan_of(profile, k_model, options));
}

} // namespace
} // namespace reckon
