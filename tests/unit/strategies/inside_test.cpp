// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/forest.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "documents/document.hpp"
#include "equations/aggregation.hpp"
#include "fixtures.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/ways.hpp"
#include "support/cases.hpp"
#include "support/inside_profiles.hpp"
#include "support/machines.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

// The solver keeps its bounds to 1e-9.
constexpr double k_precision = 1e-7;
constexpr double k_gbit = 1e9 / 8; ///< bytes per second in a Gb/s

#define EXPECT_CLOSE(actual, expected) EXPECT_NEAR(actual, expected, k_precision*(expected))

InsideOptions with_network(double network = 1) {
  InsideOptions options;
  options.network = network;
  return options;
}

Forest forest_inside(const Profile& profile, const std::string& machine,
                     const InsideOptions& options = {}) {
  return solve_forest(network_inside_machine(profile, machine, options), options.tolerance);
}

double seconds_of(const Forest& plan, const std::string& scheme) {
  for (const ForestCandidate& candidate : plan.candidates) {
    if (candidate.name == scheme) {
      return candidate.seconds_per_byte;
    }
  }
  ADD_FAILURE() << "no candidate " << scheme;
  return 0;
}

bool has(const Forest& plan, const std::string& scheme) {
  return std::any_of(plan.candidates.begin(), plan.candidates.end(),
                     [&](const ForestCandidate& c) { return c.name == scheme; });
}

std::set<std::string> schemes_of(const Forest& plan) {
  std::set<std::string> out;
  for (const SumTree& tree : plan.trees) {
    out.insert(tree.scheme);
  }
  return out;
}

/// p switches with n GPUs each, half of the switches at each of two processors.
Profile switch_tree(std::size_t n, std::size_t p, double gpu, double uplink) {
  Profile profile;
  profile.name = "tree";
  profile.machines.push_back({.id = "m0", .name = "tree"});
  const auto add = [&](ObjectKind kind, const std::string& id, const std::string& parent) {
    add_object(profile, kind, id, parent);
  };
  const auto link = [&](const std::string& a, const std::string& b, double rate) {
    add_link_both_ways(profile, a, b, rate);
  };
  add(ObjectKind::machine, "m0", "");
  add(ObjectKind::numa_node, "m0/numa0", "m0");
  add(ObjectKind::numa_node, "m0/numa1", "m0");
  for (std::size_t s = 0; s < p; ++s) {
    const std::string id = "m0/sw" + std::to_string(s);
    const std::string numa = s % 2 == 0 ? "m0/numa0" : "m0/numa1";
    add(ObjectKind::pci_bridge, id, numa);
    link(id, numa, uplink);
    for (std::size_t g = 0; g < n; ++g) {
      const std::string gpu_id = "m0/gpu" + std::to_string(s * n + g);
      add(ObjectKind::gpu, gpu_id, id);
      link(gpu_id, id, gpu);
    }
  }
  return profile;
}

TEST(Inside, ThePcieMachineIsBestCpuAssisted) {
  const Forest plan = forest_inside(shipped_profile("byteps-pcie"), "m0", with_network());
  EXPECT_EQ(plan.choice, ForestChoice::single);
  EXPECT_THAT(schemes_of(plan), ElementsAre("cpu_assisted numa0"));
  // A GPU's link carries 2 * 3/4 + 1/4 each way: 7/4 GB / 13.125 GB/s. The memory is read five
  // times (two streams of the sum, once for the NIC, twice for the way back): 5 / 37.5, the same.
  EXPECT_CLOSE(plan.seconds_per_byte, 1.75 / 13.125e9);
  // And no other trees are better: fewer streams over the GPUs' links are more in the memory.
  EXPECT_CLOSE(plan.optimum_seconds_per_byte, 1.75 / 13.125e9);
  EXPECT_CLOSE(plan.certificate_seconds_per_byte, 1.75 / 13.125e9);
  // Without a limit of the memory it would be 8 messages over four GPUs' links and the switch's.
  EXPECT_CLOSE(plan.bound_seconds_per_byte, 8 / (5 * 13.125e9));
  ASSERT_EQ(plan.trees.size(), 4U);
  EXPECT_NEAR(plan.trees[0].share, 0.25, 1e-9);
  ASSERT_EQ(plan.endpoints.size(), 9U);
  EXPECT_EQ(plan.endpoints[8], "m0/numa0");
  EXPECT_THAT(plan.trees[1].up, ElementsAre(1, 8, 1, 1, 5, 8, 5, 5, 8));
  EXPECT_EQ(plan.trees[1].down, plan.trees[1].up);
  EXPECT_EQ(plan.exits[1], "m0/nic0");
  // Brute force: eight streams arrive, seven times two are read and one written, one for the NIC,
  // eight for the way back: 23 / 37.5 read, 8 + 7 + 1 written; sums 7 / 25; links 4 / 13.125.
  EXPECT_CLOSE(seconds_of(plan, "brute_force numa0"), 23 / 37.5e9);
}

TEST(Inside, ThePcieMachinesRingRunsAtTheCopyAcrossSwitches) {
  const Forest plan = forest_inside(shipped_profile("byteps-pcie"), "m0");
  // Equation 24: 2 * 7/8 / 10 GB/s.
  EXPECT_CLOSE(seconds_of(plan, "ring"),
               ring_aggregation_s({4, 2, 1.0, 105 * k_gbit, 105 * k_gbit}, 80 * k_gbit));
  EXPECT_CLOSE(seconds_of(plan, "cpu_assisted numa0"),
               cpu_assisted_s({4, 2, 1.0, 105 * k_gbit, 105 * k_gbit}));
  // For this machine alone nothing has to end in the memory. Sums within and then between the
  // switches need no memory at all, and 7/4 of the GPUs' links as CPU-assisted aggregation does;
  // with 1/5 by brute force that is 8/5, as in equation 23, and the memory's 22/5 of reading are
  // less than 37.5/13.125 * 8/5 = 4.57. Nothing can be faster.
  EXPECT_CLOSE(plan.mix_seconds_per_byte, 1.6 / 13.125e9);
  EXPECT_CLOSE(plan.bound_seconds_per_byte, 1.6 / 13.125e9);
  EXPECT_EQ(plan.choice, ForestChoice::mix);
}

TEST(Inside, TheHighCertificateWeighsEachRangeByItsPrice) {
  // Two switches with two GPUs each, all links 10: equation 23 with n = 2 takes 2 n / (n b + b_S) =
  // 4/30, where the four links into a switch's GPUs and its uplinks bind together: by symmetry
  // prices are in proportion to capacities.
  Network model = network_inside_machine(switch_tree(2, 2, 10, 10), "m0", {});
  for (Station& link : model.stations) {
    link.high_bytes_per_second *= link.name.find("gpu") != std::string::npos ? 1.1 : 1.5;
  }
  Forest forest = solve_forest(model, 0.01, Gains::left_out);
  EXPECT_CLOSE(forest.certificate_seconds_per_byte, 4 / 30.0);
  EXPECT_CLOSE(forest.low_certificate_seconds_per_byte, 4 / (2 * 11 + 15.0));
  // A range without a price changes nothing: memories at twice their rates, links at theirs.
  for (Station& link : model.stations) {
    link.high_bytes_per_second = link.bytes_per_second;
  }
  model.stations.push_back(model.stations.front());
  model.stations.back().name = "unused";
  model.stations.back().high_bytes_per_second *= 2;
  forest = solve_forest(model, 0.01, Gains::left_out);
  EXPECT_CLOSE(forest.low_certificate_seconds_per_byte, 4 / 30.0);
}

TEST(Inside, TheNvlinkMachineIsBestWithRootsBesideTheNicsSwitch) {
  const Forest plan = forest_inside(shipped_profile("byteps-nvlink"), "m0", with_network());
  EXPECT_EQ(plan.choice, ForestChoice::single);
  EXPECT_THAT(schemes_of(plan), ElementsAre("reduce_broadcast gpu2 gpu3"));
  // The NIC's port: 1 GB / 12.5 GB/s, and nothing is slower.
  EXPECT_CLOSE(plan.seconds_per_byte, 1 / 12.5e9);
  EXPECT_CLOSE(plan.bound_seconds_per_byte, 1 / 12.5e9);
  // Figure 14b: roots 2, or 2 and 3, are best; all are worse, as two of eight share the NIC's link
  // (1 + 2/8); root 0 is the worst (1 + 1).
  EXPECT_CLOSE(seconds_of(plan, "reduce_broadcast gpu2"), 1 / 12.5e9);
  EXPECT_CLOSE(seconds_of(plan, "reduce_broadcast all"), 1.25 / 12.5e9);
  EXPECT_CLOSE(seconds_of(plan, "reduce_broadcast gpu0"), 2 / 12.5e9);
  // No NVLink joins GPU 2 with 4, 5 and 7: their sums go over other GPUs.
  const auto& up = plan.trees[0].up;
  EXPECT_EQ(up[2], 8);
  EXPECT_EQ(up[3], 2);
  EXPECT_NE(up[4], 2);
  EXPECT_NE(up[5], 2);
  EXPECT_NE(up[7], 2);
}

TEST(Inside, AServiceOnTheNvlinkMachineMakesTheNicsLinkDearer) {
  InsideOptions options = with_network();
  options.service = 1;
  const Forest plan = forest_inside(shipped_profile("byteps-nvlink"), "m0", options);
  // Through the NIC go the job's gradient and the service's, each way.
  EXPECT_CLOSE(plan.seconds_per_byte, 2 / 12.5e9);
  EXPECT_CLOSE(plan.bound_seconds_per_byte, 2 / 12.5e9);
  EXPECT_CLOSE(seconds_of(plan, "reduce_broadcast gpu0"), 3 / 12.5e9);
  EXPECT_THAT(schemes_of(plan), ElementsAre("reduce_broadcast gpu2 gpu3"));
}

TEST(Inside, GpuDirectIsOnlyForGpusThatShareTheNicsSwitch) {
  InsideOptions options = with_network();
  options.gpu_direct = true;
  const Profile profile = shipped_profile("byteps-nvlink");
  const Network model = network_inside_machine(profile, "m0", options);
  std::vector<std::string> roots;
  for (std::size_t v = 0; v < model.places.size(); ++v) {
    if (!model.exits[v].empty()) {
      roots.push_back(model.places[v].id);
    }
  }
  EXPECT_THAT(roots, ElementsAre("m0/gpu0", "m0/gpu1", "m0/numa0", "m0/numa1"));
  // Then root 0 leaves the switch's link to the processor alone.
  EXPECT_CLOSE(seconds_of(solve_forest(model, 0.01, Gains::left_out), "reduce_broadcast gpu0"),
               1 / 12.5e9);
  EXPECT_THAT(network_inside_machine(shipped_profile("byteps-pcie"), "m0", options).exits[0],
              IsEmpty());
}

TEST(Inside, TheBestOfAllTreesIsTheMixOfEquations8And9) {
  for_cases(89, support::cases(200), [](Random& random) {
    const std::size_t n = 1 + random() % 4;
    const std::size_t p = 2 + random() % 2;
    const double gpu = 1e9 * (1 + static_cast<double>(random() % 1000) / 50);
    const double uplink = gpu * std::exp2(static_cast<double>(random() % 600) / 100 - 3);
    SCOPED_TRACE(testing::Message()
                 << "n " << n << ", p " << p << ", b_N " << gpu << ", b_S " << uplink);
    const Network model = network_inside_machine(switch_tree(n, p, gpu, uplink), "m0", {});
    const Forest plan = solve_forest(model, 0.01, Gains::left_out);
    const double expected = solve_aggregation({n, p, 1.0, gpu, uplink}).time_s;
    EXPECT_CLOSE(plan.mix_seconds_per_byte, expected);
    EXPECT_CLOSE(plan.optimum_seconds_per_byte, expected);
    // Equation 27 proves that nothing else is faster either.
    EXPECT_CLOSE(plan.bound_seconds_per_byte, expected);
  });
}

TEST(Inside, APairThatCannotCopyGoesOverTheMemory) {
  Profile profile = switch_tree(2, 2, 10e9, 10e9);
  for (const char* const first : {"m0/gpu0", "m0/gpu1"}) {
    for (const char* const second : {"m0/gpu2", "m0/gpu3"}) {
      for (const auto& [from, to] : {std::pair(first, second), {second, first}}) {
        add_link_rate(profile, "device_to_device_memcpy_read_ce", from, to, 1);
        profile.cells.back().status = CellStatus::unsupported;
      }
    }
  }
  const Forest plan = forest_inside(profile, "m0");
  EXPECT_FALSE(has(plan, "ring"));
  EXPECT_FALSE(has(plan, "hierarchical"));
  EXPECT_FALSE(has(plan, "reduce_broadcast gpu0"));
  EXPECT_TRUE(has(plan, "staging"));
  EXPECT_TRUE(has(plan, "cpu_assisted numa0"));
}

TEST(Inside, LinksOfUnknownCapacityAreNamed) {
  Profile profile = switch_tree(2, 2, 10e9, 10e9);
  EXPECT_THAT(network_inside_machine(profile, "m0", {}).unknown,
              UnorderedElementsAre("numa0 > numa1", "numa1 > numa0"));
}

/// GPUs as a mere list, as other tools' outputs have them, and copies of each pair.
Profile listed_gpus(std::size_t gpus, double bytes_per_s) {
  Profile profile;
  profile.name = "list";
  profile.machines = {{.id = "m0", .count = 1}};
  profile.topology.objects.push_back({.id = "m0", .kind = ObjectKind::machine});
  const auto id = [](std::size_t i) { return "m0/gpu" + std::to_string(i); };
  for (std::size_t i = 0; i < gpus; ++i) {
    profile.topology.objects.push_back({.id = id(i), .kind = ObjectKind::gpu, .parent = "m0"});
  }
  for (std::size_t i = 0; i < gpus; ++i) {
    for (std::size_t j = 0; j < gpus; ++j) {
      if (i != j) {
        add_link_rate(profile, k_device_write_ce, id(i), id(j), bytes_per_s);
      }
    }
  }
  return profile;
}

TEST(Inside, WithoutATreeAGpuMovesToAllWhatItMovedToOne) {
  Profile profile = listed_gpus(4, 10e9);
  // A ring keeps each GPU's 10 GB/s busy with 2 (n - 1) / n gradients. Were each pair a link of its
  // own, a GPU would send 30 GB/s.
  EXPECT_CLOSE(forest_inside(profile, "m0").seconds_per_byte, 1.5 / 10e9);
  // Each GPU counts by the fastest copy from it, and to it.
  for (Cell& cell : profile.cells) {
    cell.p50 = cell.key.from == "m0/gpu2" && cell.key.to == "m0/gpu3" ? 12e9 : cell.p50;
  }
  const Network network = network_inside_machine(profile, "m0", {});
  const auto rate_of = [&](const std::string& name) {
    const auto it = std::ranges::find(network.stations, name, &Station::name);
    return it == network.stations.end() ? 0 : it->bytes_per_second;
  };
  EXPECT_EQ(rate_of("gpu2 > m0"), 12e9);
  EXPECT_EQ(rate_of("m0 > gpu3"), 12e9);
  EXPECT_EQ(rate_of("gpu3 > m0"), 10e9);
  EXPECT_TRUE(network.unknown.empty());
  EXPECT_EQ(network.at_least.size(), 8U);
  // A bound that nothing may break knows the pairs alone.
  EXPECT_EQ(network_inside_machine(profile, "m0", {.only_known_rates = true}).unknown.size(), 8U);
}

TEST(Inside, AShortWriteOfTheCopiesIsTheirLatency) {
  Profile profile = listed_gpus(2, 10e9);
  for (const double seconds : {14e-6, 3e-6}) { // staged in the host's memory, and directly
    add_link_rate(profile, "device_to_device_write_latency_ce", "m0/gpu0", "m0/gpu1", seconds);
    profile.cells.back().unit = "seconds";
    profile.cells.back().key.state = seconds > 10e-6 ? "staged" : "peer";
  }
  const Network network = network_inside_machine(profile, "m0", {});
  EXPECT_EQ(network.latency_of(0, 1), 3e-6);
  EXPECT_EQ(network.latency_of(1, 0), 0);
}

TEST(Inside, WhatTheTreeSaysOfALinkCountsBeforeCopiesOverIt) {
  Profile profile = listed_gpus(4, 10e9);
  for (TopologyObject& object : profile.topology.objects) {
    if (object.kind == ObjectKind::gpu) {
      object.pcie_bytes_per_second = 30e9;
    }
  }
  EXPECT_TRUE(network_inside_machine(profile, "m0", {}).at_least.empty());
  // All of the 12 pairs at once: each GPU sends and receives three times what one pair moves.
  EXPECT_CLOSE(forest_inside(profile, "m0").seconds_per_byte, 1.5 / 30e9);
}

TEST(Inside, WithoutGpusTheNumaNodesAreTheWorkers) {
  Profile profile = switch_tree(1, 2, 1e9, 1e9);
  std::erase_if(profile.topology.objects,
                [](const TopologyObject& o) { return o.kind == ObjectKind::gpu; });
  add_link_rate(profile, "link_bandwidth", "m0/numa0", "m0/numa1", 8e9);
  add_link_rate(profile, "link_bandwidth", "m0/numa1", "m0/numa0", 8e9);
  const Forest plan = forest_inside(profile, "m0");
  EXPECT_THAT(plan.endpoints, ElementsAre("m0/numa0", "m0/numa1"));
  // Each direction carries one gradient, whoever is the root: then one tree is better than two.
  EXPECT_CLOSE(plan.seconds_per_byte, 1 / 8e9);
  EXPECT_THAT(schemes_of(plan), ElementsAre("reduce_broadcast numa0"));
  EXPECT_CLOSE(plan.bound_seconds_per_byte, 1 / 8e9);
}

TEST(Inside, OneGpuAloneHasNothingToDo) {
  const Forest plan = forest_inside(switch_tree(2, 2, 10e9, 10e9), "m0", {.workers = {"m0/gpu1"}});
  EXPECT_EQ(plan.seconds_per_byte, 0);
  EXPECT_EQ(plan.bound_seconds_per_byte, 0);
  ASSERT_EQ(plan.trees.size(), 1U);
  EXPECT_THAT(plan.trees[0].up, ElementsAre(0));
}

TEST(Inside, SaysWhatIsMissing) {
  const Profile profile = switch_tree(2, 2, 10e9, 10e9);
  const auto plan = [&](const InsideOptions& options) {
    return forest_inside(profile, "m0", options);
  };
  EXPECT_REFUSED(input, "no machine \"m7\"", forest_inside(profile, "m7"));
  EXPECT_REFUSED(input, "no NIC", plan(with_network()));
  EXPECT_REFUSED(usage, "not negative", plan(with_network(-1)));
  EXPECT_REFUSED(input, "m0/gpu9", plan({.workers = {"m0/gpu9"}}));
  EXPECT_REFUSED(usage, "twice", plan({.workers = {"m0/gpu0", "m0/gpu0"}}));
  EXPECT_REFUSED(input, "m0/sw0", plan({.workers = {"m0/sw0"}}));
}

TEST(Inside, ASumTakesWhatItsStationWasMeasuredToTake) {
  Network network;
  network.stations.push_back({"sums gpu0", 1e9, k_gpu_reduce});
  network.stations.push_back({"sums gpu1", 1e9, k_gpu_reduce});
  network.stations.back().busy = BusyCurve({{1, 3e-6}, {1000, 4e-6}, {3000, 6e-6}});
  network.add = {{{0, 1.0}}, {{1, 1.0}}, {{0, 1.0}}};
  network.places.resize(3);
  network.places[2].lane_adds_per_s = 0.5e9; // of several lanes
  Op op;
  op.kind = OpKind::reduce;
  op.bytes = 1000;
  op.source_count = 3; // two more are added
  const OpCost cost = op_cost(network, {0, 1, 2});
  EXPECT_NEAR(cost(2, op), 4e-6, 1e-15);
  EXPECT_NEAR(cost(0, op), 2e-6, 1e-15);
  EXPECT_NEAR(cost(1, op), 5e-6, 1e-15);
}

/// Costs of parents by node, in one row.
std::vector<double> in_one(const std::vector<std::vector<double>>& rows) {
  std::vector<double> out;
  for (const std::vector<double>& row : rows) {
    out.insert(out.end(), row.begin(), row.end());
  }
  return out;
}

TEST(ArborescencesOfEveryRoot, BreakCycles) {
  // A row says what each node costs as the parent of this one. 1 and 2 are each other's cheapest
  // parents (1 each); from the root 0: 10 to 1, 4 to 2. Best: 0 to 2 to 1. 0 has no parent.
  const double never = std::numeric_limits<double>::infinity();
  const Arborescences two(in_one({{never, never, never}, {10, never, 1}, {4, 1, never}}),
                          {0, 0, 0});
  EXPECT_EQ(two.cost(0), 5);
  EXPECT_THAT(two.parents(0), ElementsAre(0, 2, 0));
  EXPECT_EQ(two.cost(1), never);
  // A cycle within a cycle: 1-2-3, entered cheapest at 3 by 4, which is reached from 1 only.
  const Arborescences nested(in_one({{never, never, never, never, never},
                                     {9, never, never, 1, never},
                                     {never, 1, never, never, never},
                                     {never, never, 1, never, 0},
                                     {never, 2, never, never, never}}),
                             {0, 0, 0, 0, 0});
  EXPECT_EQ(nested.cost(0), 12); // 9 + 1 + 2 + 0
  EXPECT_THAT(nested.parents(0), ElementsAre(0, 0, 1, 4, 1));
  // 2 need not be reached, and so is a parent for 1 alone.
  const Arborescences free(in_one({{never, 7, never}, {6, never, 1}, {5, 5, never}}), {0, 0, 1});
  EXPECT_EQ(free.cost(0), 1);
  EXPECT_THAT(free.parents(0), ElementsAre(0, 2, 2));
  EXPECT_EQ(free.cost(1), 7);
  EXPECT_EQ(Arborescences(in_one({{never, 1}, {never, never}}), {0, 0}).cost(0), never);
}

} // namespace
} // namespace reckon
