// SPDX-License-Identifier: Apache-2.0
// Places in several machines: networks, forests over them and their plans.
#include "fixtures.hpp"

#include "core/error.hpp"
#include "schedule/checker.hpp"
#include "strategies/between.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/forest/planner.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"
#include "support/inside_profiles.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

constexpr double k_nic = 10e9, k_nvlink = 1e12;

/// Machines "box" of `gpus` GPUs on a switch with one NIC, or one for each GPU, and machines "cpu"
/// with one port.
Profile boxes(std::size_t gpus, bool nic_each = false) {
  Profile profile;
  profile.name = "boxes";
  profile.machines.push_back({.id = "box", .name = "GPUs", .count = 16});
  profile.machines.push_back({.id = "cpu", .name = "CPUs", .count = 16});
  const auto add = [&](ObjectKind kind, const std::string& id, const std::string& parent) {
    add_object(profile, kind, id, parent);
  };
  const auto link = [&](const std::string& a, const std::string& b, double rate) {
    add_link_both_ways(profile, a, b, rate);
  };
  add(ObjectKind::machine, "box", "");
  add(ObjectKind::pci_bridge, "box/sw", "box");
  for (std::size_t g = 0; g < gpus; ++g) {
    const std::string id = "box/gpu" + std::to_string(g);
    add(ObjectKind::gpu, id, "box/sw");
    link(id, "box/sw", k_nvlink);
    if (nic_each || g == 0) {
      const std::string nic = "box/nic" + std::to_string(g);
      add(ObjectKind::nic, nic, "box/sw");
      link(nic, "box/sw", k_nvlink);
      add_link_rate(profile, "port_bandwidth", nic, "", k_nic);
    }
  }
  add_link_rate(profile, "port_bandwidth", "cpu", "", k_nic);
  return profile;
}

std::vector<OpenMachine> machines(std::size_t boxes, std::size_t gpus, std::size_t servers) {
  std::vector<OpenMachine> out;
  for (std::size_t b = 0; b < boxes; ++b) {
    OpenMachine machine{"box", b, {}, {}};
    for (std::size_t g = 0; g < gpus; ++g) {
      machine.workers.push_back("box/gpu" + std::to_string(g));
    }
    out.push_back(machine);
  }
  for (std::size_t s = 0; s < servers; ++s) {
    out.push_back({"cpu", s, {}, {}, false});
  }
  return out;
}

TEST(Cluster, TheInnerPlacesOfADoubleBinaryTreeAreLeavesOfTheOther) {
  for (std::size_t n = 3; n <= 16; ++n) {
    const Network network = network_between_machines(boxes(1), machines(n, 1, 0), "");
    const std::vector<NamedScheme> schemes = named_schemes(network);
    const auto scheme = std::find_if(schemes.begin(), schemes.end(), [](const NamedScheme& s) {
      return s.name == "double binary";
    });
    ASSERT_NE(scheme, schemes.end()) << n;
    ASSERT_EQ(scheme->trees.size(), 2U);
    std::vector<std::size_t> pairs_of_children(n, 0);
    for (const Tree& tree : scheme->trees) {
      EXPECT_TRUE(is_possible(network, tree));
      std::vector<std::size_t> children(n, 0);
      for (std::size_t v = 0; v < n; ++v) {
        std::size_t at = v, depth = 0;
        for (; tree.up[at] != static_cast<std::int64_t>(at); ++depth) {
          at = static_cast<std::size_t>(tree.up[at]);
        }
        // A root with one child above a binary tree of the other n - 1.
        EXPECT_LE(depth, 1 + static_cast<std::size_t>(std::log2(n - 1))) << v << " of " << n;
        children[static_cast<std::size_t>(tree.up[v])] += depth > 0 ? 1 : 0;
      }
      for (std::size_t v = 0; v < n; ++v) {
        EXPECT_LE(children[v], 2U);
        pairs_of_children[v] += children[v] == 2 ? 1U : 0U;
      }
    }
    EXPECT_THAT(pairs_of_children, Each(Le(1U))) << n;
    // With every port: at most two children in one tree of a half, none in the other, and back.
    const Forest forest = solve_forest(network, 0.0, Gains::left_out);
    for (const ForestCandidate& candidate : forest.candidates) {
      if (candidate.name == "double binary") {
        EXPECT_LE(candidate.seconds_per_byte, 2 / k_nic * (1 + 1e-9));
      }
    }
  }
}

TEST(Cluster, TheBestForestOfBoxesAndServersIsBytePssSplit) {
  // Equations 1 to 4: 2 n (n - 1) / (n^2 + n k - 2 k) of the gradient through each NIC.
  for (const double n : {2.0, 3.0, 4.0}) {
    for (double k = 0; k <= n; ++k) {
      const Network network = network_between_machines(
          boxes(4), machines(static_cast<std::size_t>(n), 4, static_cast<std::size_t>(k)), "");
      const Forest forest = solve_forest(network, 0.0, Gains::left_out);
      const double expected = 2 * n * (n - 1) / (n * n + n * k - 2 * k) / k_nic;
      EXPECT_NEAR(forest.optimum_seconds_per_byte, expected, 1e-6 * expected) << n << " " << k;
      EXPECT_NEAR(forest.certificate_seconds_per_byte, expected, 1e-6 * expected) << n << " " << k;
      EXPECT_NEAR(forest.mix_seconds_per_byte, expected, 1e-6 * expected)
          << "the named schemes between machines hold it: " << n << " " << k;
    }
  }
}

TEST(Cluster, ParameterServersAndBytePssSplitAreSchemesBetweenAnyPlaces) {
  // One GPU and one NIC of rate B a machine: equations 1, 2, 3 and 7.
  for (const double n : {2.0, 3.0, 5.0}) {
    for (double k = 0; k <= n; ++k) {
      const Forest forest = solve_forest(
          network_between_machines(
              boxes(1), machines(static_cast<std::size_t>(n), 1, static_cast<std::size_t>(k)), ""),
          0.0, Gains::left_out);
      const auto seconds = [&](const std::string& name) {
        const auto it =
            std::find_if(forest.candidates.begin(), forest.candidates.end(),
                         [&](const ForestCandidate& candidate) { return candidate.name == name; });
        return it == forest.candidates.end() ? 0 : it->seconds_per_byte * k_nic;
      };
      EXPECT_NEAR(seconds("ring"), 2 * (n - 1) / n, 1e-6) << n << " " << k;
      EXPECT_NEAR(seconds("ps colocated"), 2 * (n - 1) / n, 1e-6) << n << " " << k;
      EXPECT_NEAR(seconds("ps noncolocated"), k > 0 ? std::max(1.0, n / k) : 0, 1e-6)
          << n << " " << k;
      EXPECT_NEAR(seconds("byteps split"), 2 * n * (n - 1) / (n * n + n * k - 2 * k), 1e-6)
          << n << " " << k;
    }
  }
}

TEST(Cluster, ARingAvoidsTheSlowWaysWhereItCan) {
  Profile profile = boxes(1);
  profile.machines = {{.id = "box", .name = "GPUs", .count = 4, .members = {"a", "b", "c", "d"}}};
  // a -> b and c -> d are slow; a c b d, round again to a, passes neither.
  add_link_rate(profile, "pair_bandwidth", "a", "b", k_nic / 10);
  add_link_rate(profile, "pair_bandwidth", "c", "d", k_nic / 10);
  const Forest forest =
      solve_forest(network_between_machines(profile, machines(4, 1, 0), ""), 0.0, Gains::left_out);
  const auto ring =
      std::find_if(forest.candidates.begin(), forest.candidates.end(),
                   [](const ForestCandidate& candidate) { return candidate.name == "ring"; });
  ASSERT_NE(ring, forest.candidates.end());
  EXPECT_NEAR(ring->seconds_per_byte * k_nic, 1.5, 1e-6);
}

TEST(Cluster, ANicForEachGpuCarriesItsPartOfTheSum) {
  const Network network = network_between_machines(boxes(4, true), machines(4, 4, 0), "");
  const Forest forest = solve_forest(network);
  EXPECT_EQ(forest.choice, ForestChoice::single);
  // 2 (n - 1) / n of a quarter of the gradient.
  EXPECT_NEAR(forest.seconds_per_byte, 1.5 / 4 / k_nic, 1e-6 * 1.5 / 4 / k_nic);
  EXPECT_THAT(forest.trees, SizeIs(16)); // every GPU of every machine in turn
}

TEST(Cluster, WhatAMachineWasMeasuredToMoveBindsItsNicsTogether) {
  // Four NICs of k_nic each; the machine as a whole moves what one of them does.
  Profile profile = boxes(4, true);
  add_link_rate(profile, "port_bandwidth", "box", "", k_nic);
  const auto seconds = [&] {
    return solve_forest(network_between_machines(profile, machines(4, 4, 0), "")).seconds_per_byte;
  };
  EXPECT_NEAR(seconds(), 1.5 / k_nic, 1e-6 * 1.5 / k_nic);
  for (const double fast : {4 * k_nic, 9 * k_nic}) { // the NICs are the limit
    profile.cells.back().p50 = profile.cells.back().min = profile.cells.back().max = fast;
    EXPECT_NEAR(seconds(), 1.5 / 4 / k_nic, 1e-6 * 1.5 / 4 / k_nic);
  }
}

TEST(Cluster, APlanIsPredictedOverTheTransportThatItNames) {
  // "tcp" comes first in the order of cells, and "verbs" is what the fastest ports have.
  Profile profile = boxes(1);
  for (Cell& cell : profile.cells) {
    cell.key.transport = cell.key.test == "port_bandwidth" ? "tcp" : "";
  }
  for (const char* const of : {"box/nic0", "cpu"}) {
    add_link_rate(profile, "port_bandwidth", of, "", 10 * k_nic);
    profile.cells.back().key.transport = "verbs";
  }
  InsidePlanOptions options;
  options.machines = machines(3, 1, 0);
  const Workload model = one_tensor(64U << 20U);
  const auto plan = [&] {
    return plan_inside({profile, model, {"p", digest_of("p")}, {"w", digest_of("w")}}, options);
  };
  const double at_tcp = 4.0 / 3 * static_cast<double>(model.bytes()) / k_nic;
  EXPECT_EQ(plan().transport, "verbs");
  EXPECT_NEAR(plan().prediction.mid_seconds, at_tcp / 10, 0.05 * at_tcp / 10);
  options.plan.transport = "tcp";
  EXPECT_NEAR(plan().prediction.mid_seconds, at_tcp, 0.05 * at_tcp);
}

TEST(Cluster, PlacesAreNamedByTheirMachine) {
  const Network network = network_between_machines(boxes(2), machines(2, 2, 1), "");
  ASSERT_THAT(network.places, SizeIs(5));
  EXPECT_EQ(network.workers, 4U);
  EXPECT_EQ(network.name_of(0), "box.0/gpu0");
  EXPECT_EQ(network.name_of(3), "box.1/gpu1");
  EXPECT_EQ(network.name_of(4), "cpu.0");
  EXPECT_EQ(network.stations[network.ways[0][4]->back().station].name, "cpu.0 in");
}

TEST(Cluster, APlanOfPlacesIsProvedAndPlayedOnTheNetworkItWasMadeFor) {
  const Profile profile = boxes(4);
  InsidePlanOptions options;
  options.machines = machines(3, 4, 2);
  const Workload model = one_tensor(16U << 20U);
  const Plan plan =
      plan_inside({profile, model, {"p", digest_of("p")}, {"w", digest_of("w")}}, options);
  EXPECT_THAT(check(lower(plan)).faults, IsEmpty());
  EXPECT_EQ(plan.ranks[5].place_name(), "box.1/gpu1");
  EXPECT_EQ(plan.ranks[12].place_name(), "cpu.0");
  EXPECT_TRUE(plan.ranks[12].server);
  const Prediction& p = plan.prediction;
  EXPECT_LE(p.bound_seconds, p.lo_seconds);
  // At least the sum of a machine leaves it by its NIC.
  EXPECT_GE(p.bound_seconds, static_cast<double>(plan.gradient_bytes) / k_nic * (1 - 1e-6));
  const double optimum =
      2.0 * 3 * 2 / (9 + 6 - 4) / k_nic * static_cast<double>(plan.gradient_bytes);
  EXPECT_GE(p.mid_seconds, optimum * (1 - 1e-6));
  EXPECT_LE(p.mid_seconds, optimum * 1.05) << "windows and parts that keep the NICs busy";
  const PlanNetwork network = network_of(plan, profile);
  EXPECT_NEAR(play(lower(plan), network.network, network.cost).total_seconds, p.mid_seconds,
              0.01 * p.mid_seconds);
}

TEST(Cluster, TheNicOfAWayDoesNotDependOnWhichOtherPlacesAreOpened) {
  // Two NICs, one half as fast, serve all GPUs in turn. A plan that drops a memory has the ways
  // that it was planned with.
  Profile profile = boxes(4);
  add_object(profile, ObjectKind::nic, "box/nic1", "box/sw");
  add_link_both_ways(profile, "box/nic1", "box/sw", k_nvlink);
  add_link_rate(profile, "port_bandwidth", "box/nic1", "", k_nic / 2);
  add_object(profile, ObjectKind::numa_node, "box/numa0", "box");
  add_link_both_ways(profile, "box/numa0", "box/sw", k_nvlink);
  std::vector<OpenMachine> opened = machines(3, 4, 2);
  const Network alone = network_between_machines(profile, opened, "");
  for (OpenMachine& machine : opened) {
    if (!machine.workers.empty()) {
      machine.relays = {"box/numa0"};
    }
  }
  const Network both = network_between_machines(profile, opened, "");
  ASSERT_EQ(both.places.size(), alone.places.size() + 3);
  const auto place_of = [&](std::size_t v) { // servers stand behind the memories
    return v < alone.workers ? v : v + 3;
  };
  const auto stations = [](const Network& network, std::size_t u, std::size_t v) {
    std::vector<std::string> names;
    for (const Use& use : *network.ways[u][v]) {
      names.push_back(network.stations[use.station].name);
    }
    return names;
  };
  std::set<std::string> nics;
  for (std::size_t u = 0; u < alone.places.size(); ++u) {
    for (std::size_t v = 0; v < alone.places.size(); ++v) {
      if (u != v && alone.places[u].machine != alone.places[v].machine) {
        const std::vector<std::string> names = stations(alone, u, v);
        EXPECT_EQ(stations(both, place_of(u), place_of(v)), names);
        std::copy_if(names.begin(), names.end(), std::inserter(nics, nics.end()),
                     [](const std::string& name) { return name.find("nic") != name.npos; });
      }
    }
  }
  EXPECT_GT(nics.size(), 6U) << "both NICs are used";
}

TEST(Cluster, WhatWasMeasuredOfAPairOfMachinesCountsBetweenTheirGpus) {
  Profile profile = boxes(2);
  profile.machines = {{.id = "box", .name = "GPUs", .count = 3, .members = {"a", "b", "c"}}};
  const auto add = [&](const char* test, const char* from, const char* to, std::uint64_t bytes,
                       double seconds) {
    profile.cells.push_back(
        published({.test = test, .from = from, .to = to, .bytes = bytes, .direction = "one_way"},
                  "seconds", seconds));
  };
  // a -> b: 1 ms for nothing, and 1 GB/s; a -> c: only the latency is known, 3 ms; b -> c: nothing.
  add("pair_latency", "a", "b", 8, 1e-3);
  add("pair_write", "a", "b", 1'000'000, 2e-3);
  add("pair_write", "a", "b", 2'000'000, 3e-3);
  add("pair_latency", "a", "c", 8, 3e-3);
  add("fabric_write_latency", "box", "", 8, 5e-3);
  const Network network = network_between_machines(profile, machines(3, 2, 0), "");
  const std::vector<std::size_t> places{0, 2, 4}; // the first GPU of each
  const PlayNetwork play = between_places(network, places).network;
  EXPECT_NEAR(play.write_seconds(0, 1, 2e6), 3e-3, 1e-9);
  EXPECT_NEAR(play.write_seconds(0, 1, 12e6), 13e-3, 1e-9);
  EXPECT_NEAR(play.write_seconds(0, 2, 10e6), 3e-3 + 10e6 / k_nic, 1e-9);
  EXPECT_NEAR(play.write_seconds(1, 2, 10e6), 5e-3 + 10e6 / k_nic, 1e-9);
  EXPECT_EQ(network.pair_sources,
            (std::vector<std::string>{"pair_write: 1 ways between machines"}));
  const std::vector<std::size_t> inside{0, 1};
  EXPECT_LT(between_places(network, inside).network.write_seconds(0, 1, 8), 1e-9);
}

TEST(Cluster, AnUplinkThatIsSlowIsCrossedOnce) {
  Profile profile = boxes(2);
  profile.machines = {{.id = "box", .name = "GPUs", .count = 2, .rack = "a"},
                      {.id = "cpu", .name = "CPUs", .count = 2, .rack = "b"}};
  add_link_rate(profile, "uplink_bandwidth", "a", "", k_nic / 10);
  add_link_rate(profile, "uplink_bandwidth", "b", "", k_nic / 10);
  std::vector<OpenMachine> all = machines(2, 2, 2);
  all[2].works = all[3].works = true;
  const Forest forest =
      solve_forest(network_between_machines(profile, all, ""), 0.01, Gains::left_out);
  // The sum of one rack leaves it once, and that of the other comes in.
  EXPECT_NEAR(forest.optimum_seconds_per_byte, 10 / k_nic, 1e-6 * 10 / k_nic);
}

/// `boxes` whose switch is below a processor, by a link of half a NIC's rate; its memory is part of
/// the job, and the network does not reach the GPUs.
Network by_way_of_memories(std::size_t gpus, std::size_t servers) {
  Profile profile = boxes(gpus);
  add_object(profile, ObjectKind::numa_node, "box/numa0", "box");
  std::ranges::find(profile.topology.objects, "box/sw", &TopologyObject::id)->parent = "box/numa0";
  add_link_both_ways(profile, "box/numa0", "box/sw", k_nic / 2);
  std::vector<OpenMachine> opened = machines(2, gpus, servers);
  for (OpenMachine& machine : opened) {
    machine.gpu_direct = false;
    if (!machine.workers.empty()) {
      machine.relays = {"box/numa0"};
    }
  }
  return network_between_machines(profile, opened, "");
}

TEST(Cluster, GpusThatTheNetworkDoesNotReachHaveNoWayToAnotherMachine) {
  const Network network = by_way_of_memories(2, 1);
  ASSERT_THAT(network.places, SizeIs(7)); // two GPUs and a memory in each of two, and a server
  for (std::size_t u = 0; u < network.places.size(); ++u) {
    for (std::size_t v = 0; v < network.places.size(); ++v) {
      const Place &from = network.places[u], &to = network.places[v];
      const bool way = from.machine == to.machine ? u != v : from.memory && to.memory;
      EXPECT_EQ(network.ways[u][v].has_value(), way)
          << network.name_of(u) << " > " << network.name_of(v);
    }
  }
}

TEST(Cluster, WhatGoesByWayOfAMemoryPassesItsLinkTwice) {
  // One GPU a machine. Directly each sends and receives the gradient M once, through its NIC. By
  // way of the memory the link to that carries M from the GPU and M from the NIC, and as much back:
  // 2 M at half the NIC's rate.
  const Forest direct =
      solve_forest(network_between_machines(boxes(1), machines(2, 1, 0), ""), 0.0, Gains::left_out);
  EXPECT_NEAR(direct.optimum_seconds_per_byte * k_nic, 1, 1e-6);
  const Forest staged = solve_forest(by_way_of_memories(1, 0), 0.0, Gains::left_out);
  EXPECT_NEAR(staged.optimum_seconds_per_byte * k_nic, 4, 1e-6);
}

TEST(Cluster, WhatTheProfileLacksIsNamed) {
  Profile profile = boxes(2);
  EXPECT_REFUSED(input, "\"box\"", network_between_machines(profile, machines(17, 2, 0), ""));
  EXPECT_REFUSED(input, "\"none\"", network_between_machines(profile, {{"none", 0, {}, {}}}, ""));
  std::vector<OpenMachine> unreached = machines(2, 2, 0);
  unreached[0].gpu_direct = false;
  EXPECT_REFUSED(input, "NUMA node", network_between_machines(profile, unreached, ""));
  std::erase_if(profile.cells, [](const Cell& c) { return c.key.test == "port_bandwidth"; });
  EXPECT_REFUSED(input, "network",
                 network_between_machines(profile, {{"cpu", 0, {}, {}}, {"cpu", 1, {}, {}}}, ""));
}

} // namespace
} // namespace reckon
