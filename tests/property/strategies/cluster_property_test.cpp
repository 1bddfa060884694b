// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "schedule/checker.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/forest/planner.hpp"
#include "strategies/forest/spanning.hpp"
#include "strategies/lower.hpp"
#include "support/cases.hpp"
#include "support/inside_profiles.hpp"
#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <random>

namespace reckon {
namespace {

constexpr std::uint64_t k_seed = 1717;
constexpr int k_cases = support::cases(2000);
constexpr double k_precision = 1e-6;

struct Case {
  Profile profile;
  std::vector<OpenMachine> machines;
};

/// Two or three machines of random GPUs and links, each direction with a rate of its own, and by
/// chance machines that only sum; ports of random rates, between pairs sometimes less.
Case random_case(std::mt19937_64& random) {
  const auto rate = [&](double least, double most) {
    return least + (most - least) * static_cast<double>(random() % 1000) / 1000;
  };
  Case out;
  out.profile = test::random_inside_profile(random, 3);
  const std::size_t boxes = 2 + random() % 2, servers = random() % 3;
  MachineGroup group = out.profile.machines.front();
  group.count = boxes;
  for (std::size_t b = 0; b < boxes; ++b) {
    group.members.push_back("b" + std::to_string(b));
  }
  out.profile.machines.front() = group;
  out.profile.machines.push_back({.id = "s", .name = "servers", .count = 2});
  test::add_link_rate(out.profile, "port_bandwidth", "m0", "", rate(1e9, 20e9));
  test::add_link_rate(out.profile, "port_bandwidth", "s", "", rate(1e9, 20e9));
  for (std::size_t a = 0; a < boxes; ++a) {
    for (std::size_t b = 0; b < boxes; ++b) {
      if (a != b && random() % 3 == 0) {
        test::add_link_rate(out.profile, "pair_bandwidth", group.members[a], group.members[b],
                            rate(0.5e9, 10e9));
      }
    }
  }
  const bool memories = random() % 2 == 0;
  for (std::size_t b = 0; b < boxes; ++b) {
    OpenMachine machine{"m0", b, {}, {}};
    for (const TopologyObject& object : out.profile.topology.objects) {
      if (object.kind == ObjectKind::gpu) {
        machine.workers.push_back(object.id);
      } else if (object.kind == ObjectKind::numa_node && memories) {
        machine.relays.push_back(object.id);
      }
    }
    out.machines.push_back(std::move(machine));
  }
  for (std::size_t s = 0; s < servers; ++s) {
    out.machines.push_back({"s", s, {}, {}, false});
  }
  return out;
}

template <class Check>
void for_cases(int cases, Check check) {
  test::for_cases(k_seed, cases, [&](test::Random& random) { check(random_case(random), random); });
}

TEST(ClusterProperty, NoForestIsFasterThanTheBoundAndTheCertificate) {
  std::size_t schemes = 0, closed = 0, all = 0;
  for_cases(k_cases, [&](const Case& c, std::mt19937_64&) {
    const Network network = network_between_machines(c.profile, c.machines, "");
    const Forest forest = solve_forest(network, 0.01, Gains::left_out);
    const double optimum = forest.optimum_seconds_per_byte;
    EXPECT_LE(forest.bound_seconds_per_byte, optimum * (1 + k_precision));
    EXPECT_LE(forest.certificate_seconds_per_byte, optimum * (1 + k_precision));
    for (const ForestCandidate& candidate : forest.candidates) {
      EXPECT_GE(candidate.seconds_per_byte, optimum * (1 - k_precision)) << candidate.name;
      EXPECT_GE(candidate.seconds_per_byte, forest.certificate_seconds_per_byte * (1 - k_precision))
          << candidate.name;
      ++schemes;
    }
    ++all;
    closed += forest.certificate_seconds_per_byte >= optimum * (1 - 1e-4) ? 1U : 0U;
  });
  std::cout << schemes << " schemes; " << closed << " of " << all << " proved optimal\n";
}

TEST(ClusterProperty, TheOrderOfTheMachinesChangesNothing) {
  for_cases(k_cases / 2, [&](const Case& c, std::mt19937_64& random) {
    std::vector<OpenMachine> other = c.machines;
    std::shuffle(other.begin(), other.end(), random);
    const auto solved = [&](const std::vector<OpenMachine>& machines) {
      return solve_forest(network_between_machines(c.profile, machines, ""), 0.01, Gains::left_out);
    };
    const Forest a = solved(c.machines), b = solved(other);
    EXPECT_NEAR(a.bound_seconds_per_byte, b.bound_seconds_per_byte,
                k_precision * a.bound_seconds_per_byte);
    // Both are at least the certificate of either.
    EXPECT_GE(a.optimum_seconds_per_byte, b.certificate_seconds_per_byte * (1 - k_precision));
    EXPECT_GE(b.optimum_seconds_per_byte, a.certificate_seconds_per_byte * (1 - k_precision));
  });
}

TEST(ClusterProperty, APlanSumsEveryByteAndIsNotFasterThanItsBound) {
  Workload workload;
  workload.name = "w";
  workload.tensors.push_back({"t", 300'000, DType::fp32});
  for_cases(k_cases / 5, [&](const Case& c, std::mt19937_64&) {
    InsidePlanOptions options;
    options.machines = c.machines;
    options.plan.part_bytes = 1U << 16U;
    const Plan plan = plan_inside({c.profile, workload, {"p", {}}, {"w", {}}}, options);
    EXPECT_TRUE(check(lower(plan)).faults.empty());
    EXPECT_LE(plan.prediction.bound_seconds, plan.prediction.lo_seconds);
    EXPECT_LE(plan.prediction.lo_seconds, plan.prediction.mid_seconds);
  });
}

/// No mirrored tree is cheaper than the bound, nor is any other.
TEST(ClusterProperty, SpanningTreesBoundEveryTree) {
  std::size_t equal = 0, all = 0;
  for_cases(k_cases / 2, [&](const Case& c, std::mt19937_64& random) {
    const Network network =
        network_inside_machine(c.profile, "m0", {.relays = std::vector<std::string>{}});
    std::vector<double> prices;
    for (std::size_t s = 0; s < network.stations.size(); ++s) {
      prices.push_back(static_cast<double>(random() % 1000) * 1e-12);
    }
    const Spanning spanning(network, prices);
    ASSERT_TRUE(spanning.bounds());
    double cheapest = std::numeric_limits<double>::infinity();
    for (const PricedTree& tree : cheapest_trees(network, prices)) {
      cheapest = std::min(cheapest, tree.cost);
    }
    EXPECT_LE(spanning.least_cost(), cheapest * (1 + k_precision));
    if (const std::optional<Tree> tree = spanning.tree(0)) {
      EXPECT_TRUE(is_possible(network, *tree));
    }
    ++all;
    equal += spanning.least_cost() >= cheapest * (1 - k_precision) ? 1U : 0U;
  });
  std::cout << equal << " of " << all << " bounds are exact\n";
}

} // namespace
} // namespace reckon
