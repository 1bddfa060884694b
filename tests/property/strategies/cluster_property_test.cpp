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
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <map>
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

void add_seconds(Profile& profile, const char* test, const std::string& from, const std::string& to,
                 std::uint64_t bytes, double seconds) {
  Cell& cell = profile.cells.emplace_back();
  cell.key = {.test = test, .from = from, .to = to, .bytes = bytes, .direction = "one_way"};
  cell.status = CellStatus::published;
  cell.unit = "seconds";
  cell.min = cell.p50 = cell.p99 = cell.max = seconds;
}

/// Two or three machines of random GPUs and links, each direction with a rate of its own, and by
/// chance machines that only sum; ports of random rates; of some pairs rates, latencies or writes
/// that were measured.
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
      if (a != b && random() % 4 == 0) {
        add_seconds(out.profile, "pair_latency", group.members[a], group.members[b], 8,
                    rate(1e-6, 1e-3));
      }
      if (a != b && random() % 5 == 0) {
        const double first = rate(1e-5, 1e-3), slope = 1 / rate(0.5e9, 10e9);
        for (const std::uint64_t bytes : {std::uint64_t{4096}, std::uint64_t{1048576}}) {
          add_seconds(out.profile, "pair_write", group.members[a], group.members[b], bytes,
                      first + slope * static_cast<double>(bytes));
        }
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

TEST(ClusterProperty, APlanSumsEveryByteAndIsTheSameInAnyOrderOfTheMachines) {
  Workload workload;
  workload.name = "w";
  workload.tensors.push_back({"t", 300'000, DType::fp32});
  for_cases(k_cases / 8, [&](const Case& c, std::mt19937_64& random) {
    InsidePlanOptions options;
    options.machines = c.machines;
    options.plan.part_bytes = 1U << 16U;
    const auto planned = [&] {
      return plan_inside({c.profile, workload, {"p", {}}, {"w", {}}}, options);
    };
    const Plan plan = planned();
    EXPECT_TRUE(check(lower(plan)).faults.empty());
    EXPECT_LE(plan.prediction.bound_seconds, plan.prediction.lo_seconds);
    EXPECT_LE(plan.prediction.lo_seconds, plan.prediction.mid_seconds);
    std::shuffle(options.machines.begin(), options.machines.end(), random);
    const Plan other = planned();
    EXPECT_TRUE(check(lower(other)).faults.empty());
    constexpr double k_rounding = 1e-9;
    EXPECT_NEAR(other.prediction.bound_seconds, plan.prediction.bound_seconds,
                k_rounding * plan.prediction.bound_seconds);
    EXPECT_NEAR(other.prediction.mid_seconds, plan.prediction.mid_seconds,
                k_rounding * plan.prediction.mid_seconds);
  });
}

/// Machines of a worker and a memory, and places that only sum; some machines alike. Each kind of
/// way has a station of its own.
Network random_places(test::Random& random) {
  Network network;
  const std::size_t machines = 2 + random() % 2, memories = random() % 2 == 0 ? machines : 0;
  const std::size_t servers = random() % (7 - machines - memories);
  const bool alike = random() % 4 > 0;
  network.workers = machines;
  for (std::size_t v = 0; v < machines + memories + servers; ++v) {
    const std::size_t machine = v < machines + memories ? v % machines : v - memories;
    network.places.push_back({std::to_string(v), v < machines, v >= machines, machine});
  }
  const std::size_t n = network.places.size();
  network.machines.resize(machines + servers);
  std::map<std::vector<std::size_t>, std::size_t> stations;
  const auto station = [&](std::vector<std::size_t> what) {
    const auto [at, is_new] = stations.try_emplace(std::move(what), stations.size());
    if (is_new) {
      network.stations.push_back({"s", 1, "", 0, 1, 1});
    }
    return at->second;
  };
  const auto kind = [&](std::size_t v) {
    return !alike ? v : v < machines ? 0 : v < machines + memories ? std::size_t{1} : 2;
  };
  std::map<std::vector<std::size_t>, bool> possible;
  network.ways.assign(n, std::vector<std::optional<Uses>>(n));
  for (std::size_t u = 0; u < n; ++u) {
    network.add.push_back({{station({kind(u)}), 1}});
    network.exits.push_back({{"", {}}});
    for (std::size_t v = 0; v < n; ++v) {
      const std::size_t same = network.places[u].machine == network.places[v].machine ? 1 : 0;
      const std::vector<std::size_t> what{kind(u), kind(v), same};
      if (u != v && possible.try_emplace(what, random() % 8 > 0).first->second) {
        network.ways[u][v] = Uses{{station(what), 1}};
      }
    }
  }
  return network;
}

/// By root: what the cheapest of all trees of one half costs, counted here.
std::vector<double> cheapest_of_all(const Network& network, const std::vector<double>& prices,
                                    bool up) {
  const std::size_t n = network.places.size();
  const auto price = [&](const Uses& uses) { return prices[uses.front().station]; };
  std::vector<double> out(n, std::numeric_limits<double>::infinity());
  for (std::vector<std::size_t> parent(n, 0);;) { // v: the root; n: not in the tree
    std::size_t root = n, roots = 0;
    double cost = 0;
    bool valid = true;
    for (std::size_t v = 0; v < n && valid; ++v) {
      const std::size_t p = parent[v];
      roots += p == v ? 1U : 0U;
      root = p == v ? v : root;
      valid = p < n || v >= network.workers;
      if (p < n && p != v && valid) {
        const std::optional<Uses>& way = up ? network.ways[v][p] : network.ways[p][v];
        valid = way.has_value() && parent[p] < n;
        cost += valid ? price(*way) : 0;
      }
    }
    valid = valid && roots == 1;
    for (std::size_t v = 0; v < n && valid; ++v) {
      std::size_t at = v, children = 0;
      for (std::size_t steps = 0; parent[v] < n && at != root && valid; ++steps) {
        valid = steps < n;
        at = parent[at];
      }
      for (std::size_t c = 0; c < n; ++c) {
        children += c != v && parent[c] == v ? 1U : 0U;
      }
      const std::size_t streams = children + (v < network.workers ? 1U : 0U);
      cost += up && streams > 1 ? static_cast<double>(streams - 1) * price(network.add[v]) : 0;
    }
    if (valid) {
      out[root] = std::min(out[root], cost);
    }
    std::size_t digit = 0;
    while (digit < n && ++parent[digit] > n) {
      parent[digit++] = 0;
    }
    if (digit == n) {
      return out;
    }
  }
}

TEST(ClusterProperty, TheCheapestTreesAreThoseOfAllTreesAlsoWhereMachinesAreAlike) {
  std::size_t roots = 0, limited = 0;
  test::for_cases<test::Random>(k_seed, support::cases(300), [&](test::Random& random) {
    const Network network = random_places(random);
    std::vector<double> prices;
    for (std::size_t s = 0; s < network.stations.size(); ++s) {
      prices.push_back(random() % 4 == 0 ? 0.0 : static_cast<double>(random() % 1000));
    }
    const std::size_t n = network.places.size();
    const std::vector<double> up = cheapest_of_all(network, prices, true);
    const std::vector<double> down = cheapest_of_all(network, prices, false);
    const CheapestTrees found = cheapest_trees(network, prices);
    double least = std::numeric_limits<double>::infinity();
    std::vector<double> cost(n, least);
    for (const PricedTree& tree : found.trees) {
      EXPECT_TRUE(is_possible(network, tree.tree));
      cost[root_of(tree.tree)] = tree.cost;
    }
    for (std::size_t root = 0; root < n; ++root) {
      const double expected = up[root] + down[root];
      least = std::min(least, expected);
      if (std::isinf(expected)) {
        EXPECT_TRUE(std::isinf(found.least[root]) && std::isinf(cost[root])) << root;
      } else {
        EXPECT_NEAR(found.least[root], expected, 1e-6) << root;
        EXPECT_NEAR(cost[root], expected, 1e-6) << root;
        ++roots;
      }
    }
    // Of those below a limit the same, and no bound beyond it is said to hold.
    const double limit = least + static_cast<double>(random() % 100);
    const CheapestTrees below = cheapest_trees(network, prices, std::vector<double>(n, limit));
    for (std::size_t root = 0; root < n; ++root) {
      EXPECT_LE(below.least[root], up[root] + down[root] + 1e-6);
      EXPECT_GE(below.least[root], std::min(limit, up[root] + down[root]) - 1e-6);
    }
    limited += below.trees.size();
  });
  std::cout << roots << " roots compared with all trees, " << limited << " below a limit\n";
}

/// A spanning tree is a tree, and none of all trees costs more than the certificate says.
TEST(ClusterProperty, SpanningTreesArePossibleAndNotCheaperThanTheCheapest) {
  for_cases(k_cases / 2, [&](const Case& c, std::mt19937_64& random) {
    const Network network = network_between_machines(c.profile, c.machines, "");
    std::vector<double> prices;
    for (std::size_t s = 0; s < network.stations.size(); ++s) {
      prices.push_back(static_cast<double>(random() % 1000) * 1e-12);
    }
    const std::vector<double> least = cheapest_trees(network, prices).least;
    if (const std::optional<Tree> tree = Spanning(network, prices).tree(random() % 8)) {
      EXPECT_TRUE(is_possible(network, *tree));
      EXPECT_GE(cost_of(network, *tree, prices), least[root_of(*tree)] * (1 - k_precision));
    }
  });
}

} // namespace
} // namespace reckon
