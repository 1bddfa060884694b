// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"
#include "proved.hpp"

#include "documents/document.hpp"
#include "strategies/forest/equal_machines.hpp"
#include "strategies/lower.hpp"
#include "strategies/part_trees.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/prediction.hpp"
#include "strategies/shares/heads.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

Profile shipped(const std::string& name, std::uint64_t machines, std::uint64_t servers,
                double server_bytes_per_s = 1e11) {
  Profile profile = read_profile(RECKON_SOURCE_DIR "/profiles/" + name + ".json");
  profile.machines.resize(1);
  profile.machines.front().count = machines;
  if (servers > 0) {
    profile.machines.push_back({.id = "cpu", .name = "cpu", .count = servers, .cores = 64});
    add_rate(profile, {.test = "port_bandwidth", .from = "cpu", .transport = "verbs;ofi_rxm"},
             server_bytes_per_s);
  }
  return profile;
}

/// The GPUs of all machines, the first `width` of each, and the others as they are.
std::vector<PlanRank> ranks_of(const Profile& profile, std::size_t width) {
  std::vector<PlanRank> ranks;
  const MachineGroup& first = profile.machines.front();
  const std::vector<std::string> gpus = profile.topology.ids_in(first.id, ObjectKind::gpu);
  for (std::uint64_t m = 0; m < first.count; ++m) {
    for (std::size_t g = 0; g < width; ++g) {
      PlanRank& rank = ranks.emplace_back();
      rank.machine = first.id;
      rank.machine_number = m;
      rank.endpoint = gpus.at(g);
      rank.worker = true;
    }
  }
  for (std::uint64_t k = 0; profile.machines.size() > 1 && k < profile.machines[1].count; ++k) {
    PlanRank& rank = ranks.emplace_back();
    rank.machine = profile.machines[1].id;
    rank.machine_number = k;
  }
  return ranks;
}

Plan planned(const Profile& profile, const std::vector<PlanRank>& ranks, const Workload& workload,
             const PlanOptions& asked, std::uint64_t lanes = 1) {
  InsidePlanOptions options;
  options.plan = asked;
  options.lanes = lanes;
  EXPECT_EQ(why_not_equal_machines(profile, ranks, options, true), "");
  return plan_equal_machines({profile, workload, {}, {}}, ranks, options, true);
}

TEST(Heads, TwoMachinesOfThreeAndOneThatServesByHand) {
  // Machines 0 1 2 and 3 4 5, server 6. One way: worker 1 is the head, 2 hands to 0 and 0 to 1.
  Plan plan;
  for (std::uint64_t m = 0; m < 2; ++m) {
    for (int g = 0; g < 3; ++g) {
      plan.ranks.emplace_back().machine = "m0";
      plan.ranks.back().machine_number = m;
      plan.ranks.back().worker = true;
    }
  }
  plan.ranks.emplace_back().machine = "cpu";
  plan.ranks.back().server = true;
  plan.machine_trees = {{1, 1, 0}};
  const Heads heads(plan);
  const auto parents = [&](std::size_t root) {
    std::vector<int> out;
    for (std::size_t rank = 0; rank < 7; ++rank) {
      const auto above = heads.parent(root, 0, rank);
      out.push_back(above ? static_cast<int>(*above) : -1);
    }
    return out;
  };
  EXPECT_THAT(parents(4), ElementsAre(1, 4, 0, 4, 4, 3, -1));
  EXPECT_THAT(parents(6), ElementsAre(1, 6, 0, 4, 6, 3, 6));
  EXPECT_THAT(heads.children(4, 0, 4), ElementsAre(1, 3));
  EXPECT_THAT(heads.children(6, 0, 6), ElementsAre(1, 4));
  EXPECT_THAT(heads.children(6, 0, 0), ElementsAre(2));
  EXPECT_THAT(heads.children(6, 0, 2), IsEmpty());
}

TEST(EqualMachines, EveryShapeIsProvedAndSendsWhatItSays) {
  std::size_t proved = 0, by_switches = 0, served = 0;
  for (const char* const name : {"h100-cluster", "byteps-pcie"}) {
    for (const std::uint64_t machines : {2U, 4U, 5U}) {
      for (const std::uint64_t servers : {0U, 1U, 3U}) {
        for (const std::size_t width : {2U, 8U}) {
          for (const char* const strategy : {k_hierarchical_split, k_hierarchical_two_level}) {
            if (strategy == k_hierarchical_two_level && machines < 4) {
              continue;
            }
            SCOPED_TRACE(fmt::format("{} {}x{}+{} {}", name, machines, width, servers, strategy));
            const Profile profile = shipped(name, machines, servers);
            const Plan plan = planned(
                profile, ranks_of(profile, width), one_tensor(20'000),
                {.strategy = strategy, .part_bytes = 1024, .window_parts = 1 + machines % 4}, 2);
            expect_proved(plan);
            for (std::size_t r = machines * width; r < plan.ranks.size(); ++r) {
              served += plan.ranks[r].assigned_bytes > 0 ? 1U : 0U;
            }
            const std::vector<std::uint64_t>& way = plan.machine_trees.front();
            by_switches += std::ranges::count(way, 0) < static_cast<long>(width) ? 1U : 0U;
            ++proved;
          }
        }
      }
    }
  }
  EXPECT_EQ(proved, 60U);
  EXPECT_GT(by_switches, 10U);
  EXPECT_GT(served, 20U);
}

/// The whole play of a plan, over its predicted time.
double played_over_predicted(const Profile& profile, std::size_t width, const PlanOptions& asked,
                             std::uint64_t bytes) {
  const Plan plan = planned(profile, ranks_of(profile, width), one_tensor(bytes), asked);
  const PlanNetwork network = network_of(plan, profile);
  return play(lower(plan), network.network, network.cost).total_seconds /
         plan.prediction.mid_seconds;
}

TEST(EqualMachines, APlanTooLongToPlayTakesWhatItsWholePlayTakes) {
  // 12 x 4 and 12 x 4 + 2, in some 4,500 parts: more writes than are played. The formula has parts
  // come one after another at each level, and a play has some of them beside each other.
  const PlanOptions star{.strategy = k_hierarchical_split, .part_bytes = 65536},
      groups{.strategy = k_hierarchical_two_level, .part_bytes = 65536};
  const Profile working = shipped("h100-cluster", 12, 0), served = shipped("h100-cluster", 12, 2);
  EXPECT_NEAR(played_over_predicted(working, 4, groups, 73'000'000), 1, 0.03);
  EXPECT_NEAR(played_over_predicted(served, 4, star, 73'000'000), 1, 0.05);
}

TEST(EqualMachines, TheBusiestStationOfAllMachinesIsThatOfTheSample) {
  // Machines whose ports, switches or NVLinks bind; too long to be played.
  for (const char* const name : {"h100-cluster", "byteps-pcie", "byteps-nvlink"}) {
    for (const std::uint64_t servers : {0U, 3U}) {
      for (const char* const strategy : {k_hierarchical_split, k_hierarchical_two_level}) {
        SCOPED_TRACE(fmt::format("{} + {} {}", name, servers, strategy));
        const Profile profile = shipped(name, 6, servers, 2e9);
        const std::vector<PlanRank> ranks = ranks_of(profile, 8);
        const Plan plan = planned(profile, ranks, one_tensor(73'000'000),
                                  {.strategy = strategy, .part_bytes = 65536});
        const Ways ways(profile, places_of(ranks, profile, "", true));
        EXPECT_NEAR(plan.prediction.busy_seconds() /
                        busiest_station(lower(together(plan)), ways.between(65536)).seconds,
                    1, 2e-3);
      }
    }
  }
}

TEST(EqualMachines, AWholeDataCentreIsNearItsBound) {
  for (const std::uint64_t servers : {0U, 256U}) {
    const Profile profile = shipped("h100-cluster", 1024, servers);
    const std::vector<PlanRank> ranks = ranks_of(profile, 8);
    const Plan plan = planned(profile, ranks, one_tensor(335'000'000), {});
    EXPECT_EQ(plan.strategy, k_hierarchical_two_level);
    EXPECT_EQ(plan.ranks.size(), 8192 + servers);
    EXPECT_LT(plan.prediction.mid_seconds,
              (servers > 0 ? 1.09 : 1.03) * plan.prediction.bound_seconds);
    // Equation 7 with n machines of 8 ports of 50 GB/s, and servers of a quarter of that.
    const double n = 1024, k = static_cast<double>(servers) / 4, bytes = 1.34e9;
    EXPECT_NEAR(plan.prediction.bound_seconds,
                2 * n * (n - 1) * bytes / ((n * n + k * n - 2 * k) * 4e11), 1e-9);
    const double sent = std::accumulate(
        plan.ranks.begin(), plan.ranks.end(), 0.0,
        [](double sum, const PlanRank& rank) { return sum + double(rank.egress_bytes); });
    EXPECT_GT(sent, 2 * 8191 * bytes * (1 - 1e-9)); // each tree has n - 1 edges, up and down
  }
}

TEST(EqualMachines, WhatIsNotEqualIsRefused) {
  Profile profile = shipped("h100-cluster", 4, 0);
  const std::vector<PlanRank> ranks = ranks_of(profile, 4);
  const InsidePlanOptions options;
  EXPECT_EQ(why_not_equal_machines(profile, ranks, options, true), "");
  std::vector<PlanRank> less = ranks;
  less.pop_back();
  EXPECT_NE(why_not_equal_machines(profile, less, options, true), "");
  std::vector<PlanRank> others = ranks;
  others[5].endpoint = "m0/gpu7";
  EXPECT_NE(why_not_equal_machines(profile, others, options, true), "");
  InsidePlanOptions gather;
  gather.collective = Collective::all_gather;
  EXPECT_NE(why_not_equal_machines(profile, ranks, gather, true), "");
  profile.machines.front().members = {"a", "b", "c", "d"};
  EXPECT_NE(why_not_equal_machines(profile, ranks, options, true), "");
  // Two machines that meet have no groups.
  const Profile two = shipped("h100-cluster", 2, 0);
  InsidePlanOptions asked;
  asked.plan.strategy = k_hierarchical_two_level;
  const Workload workload = one_tensor(1000);
  // GPUs that do not reach each other's machines.
  EXPECT_NE(why_not_equal_machines(two, ranks_of(two, 2), options, false), "");
  EXPECT_ERROR(plan_equal_machines({two, workload, {}, {}}, ranks_of(two, 2), asked, true));
}

} // namespace
} // namespace reckon
