// SPDX-License-Identifier: Apache-2.0
#include "strategies/planner.hpp"
#include "strategies/strategy.hpp"
#include "support/cases.hpp"
#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace reckon {
namespace {

constexpr std::uint64_t k_seed = 20261124;
constexpr int k_networks = support::cases(2000), k_long_networks = support::cases(200);
/// Elements of each of three tensors, at most.
constexpr std::uint64_t k_short = 300'000, k_long = 2'000'000;
constexpr double k_rounding = 1e-9;
constexpr double k_of_a_few_parts = 0.05;
constexpr const char* k_transport = "verbs";
constexpr double k_latency_s = 10e-6; ///< between machines that are not measured as a pair

Cell published(CellKey key, const std::string& unit, double value) {
  Cell cell;
  cell.key = std::move(key);
  cell.status = CellStatus::published;
  cell.unit = unit;
  cell.min = cell.p50 = cell.p99 = cell.max = value;
  cell.bytes_convention = unit == "seconds" ? "" : "payload";
  return cell;
}

/// A machine with a port, what it does in the job, and its rack.
struct Node {
  double port_bytes_per_s = 0;
  bool worker = false, server = false;
  std::size_t rack = 0;
};

/// Machines whose directed pairs have a rate and a latency of their own, in racks with uplinks.
struct Case {
  std::vector<Node> nodes;
  std::vector<double> uplinks;                ///< bytes/s by rack; empty: there are no racks
  std::vector<std::vector<double>> pairs;     ///< bytes/s by sender and receiver; 0: not measured
  std::vector<std::vector<double>> latencies; ///< seconds
  Workload workload;
};

Case random_case(test::Random& random, std::uint64_t most_elements) {
  Case c;
  const std::size_t workers = random.whole(2, 5), servers = random.below(3);
  const std::size_t racks = random.below(3);
  for (std::size_t r = 0; r < racks; ++r) {
    c.uplinks.push_back(random.uniform(0.5e9, 10e9));
  }
  const bool colocated = random.coin();
  for (std::size_t n = 0; n < workers + servers; ++n) {
    c.nodes.push_back({random.uniform(1e9, 10e9), n < workers, n >= workers || colocated,
                       racks == 0 ? 0 : n % racks});
  }
  c.pairs.assign(c.nodes.size(), std::vector<double>(c.nodes.size()));
  c.latencies = c.pairs;
  const bool any_measured = random.below(4) > 0, all_measured = random.coin();
  for (std::size_t a = 0; a < c.nodes.size(); ++a) {
    for (std::size_t b = 0; b < c.nodes.size(); ++b) {
      if (a != b && any_measured && (all_measured || random.coin())) {
        c.pairs[a][b] = random.uniform(0.3e9, 10e9);
        c.latencies[a][b] = random.uniform(1e-6, 20e-6);
      }
    }
  }
  c.workload.name = "w";
  for (std::size_t t = 0; t < 3; ++t) {
    c.workload.tensors.push_back(
        {"t" + std::to_string(t), random.whole(most_elements / 100, most_elements), DType::fp32});
  }
  return c;
}

/// The plan with the nodes in this order; `names` and `rack_names` by node and rack.
Plan plan_of(const Case& c, const std::vector<std::size_t>& order,
             const std::vector<std::string>& names, const std::vector<std::string>& rack_names) {
  Profile p;
  p.name = "random";
  p.source = "made for a test";
  Roles roles;
  roles.name = "random";
  for (const std::size_t n : order) {
    const Node& node = c.nodes[n];
    const std::string rack = c.uplinks.empty() ? "" : rack_names[node.rack];
    p.machines.push_back({names[n], names[n], 1, 8, 0, rack});
    roles.groups.push_back({names[n], 1, node.worker, node.server, 1});
    p.cells.push_back(
        published({.test = "port_bandwidth", .from = names[n], .transport = k_transport},
                  "bytes_per_second", node.port_bytes_per_s));
    p.cells.push_back(published(
        {.test = "fabric_write_latency", .from = names[n], .bytes = 8, .transport = k_transport},
        "seconds", k_latency_s));
    for (const std::size_t m : order) {
      if (c.pairs[n][m] > 0) {
        p.cells.push_back(published({.test = "pair_bandwidth",
                                     .from = names[n],
                                     .to = names[m],
                                     .transport = k_transport,
                                     .direction = "one_way"},
                                    "bytes_per_second", c.pairs[n][m]));
        p.cells.push_back(published(
            {.test = "pair_latency", .from = names[n], .to = names[m], .transport = k_transport},
            "seconds", c.latencies[n][m]));
      }
    }
  }
  for (std::size_t r = 0; r < c.uplinks.size(); ++r) {
    p.cells.push_back(published({.test = "uplink_bandwidth", .from = rack_names[r]},
                                "bytes_per_second", c.uplinks[r]));
  }
  PlanOptions options;
  options.transport = k_transport;
  return make_plan({p, c.workload, roles, {"p", {}}, {"w", {}}, std::nullopt}, options);
}

std::vector<std::string> numbered(const std::string& prefix, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(prefix + std::to_string(i));
  }
  return names;
}

std::vector<std::size_t> in_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

Plan plan_of(const Case& c) {
  return plan_of(c, in_order(c.nodes.size()), numbered("m", c.nodes.size()),
                 numbered("r", c.uplinks.size()));
}

/// How far the candidates of two plans for the same network are apart, as parts of the first.
struct Difference {
  double bound = 0, prediction = 0;
  std::size_t predictions = 0, differ = 0;
  void add(const Prediction& a, const Prediction& b) {
    const double of_bound = std::abs(b.bound_seconds / a.bound_seconds - 1);
    const double of_prediction = std::abs(b.mid_seconds / a.mid_seconds - 1);
    bound = std::max(bound, of_bound);
    prediction = std::max(prediction, of_prediction);
    ++predictions;
    differ += std::max(of_bound, of_prediction) > k_rounding ? 1U : 0U;
  }
};
using Differences = std::map<std::string, Difference>;

void compare(const Plan& plan, const Plan& other, Differences& found) {
  ASSERT_EQ(plan.candidates.size(), other.candidates.size());
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const Candidate& a = plan.candidates[i];
    const Candidate& b = other.candidates[i];
    ASSERT_EQ(a.strategy, b.strategy);
    ASSERT_EQ(a.prediction.has_value(), b.prediction.has_value()) << a.strategy;
    if (a.prediction) {
      found[a.strategy].add(*a.prediction, *b.prediction);
    }
  }
}

void print(const Differences& found) {
  for (const auto& [strategy, most] : found) {
    std::cout << strategy << ": at most " << 100 * most.bound << " % of the bound and "
              << 100 * most.prediction << " % of the prediction; " << most.differ << " of "
              << most.predictions << " differ\n";
  }
}

TEST(PlannerProperty, NoCandidateIsFasterThanItsBoundNorTheChosenSlowerThanAnother) {
  std::map<std::string, std::size_t> predicted;
  std::cout << "seed " << k_seed << "\n";
  test::for_cases(k_seed, k_networks, [&](test::Random& random) {
    const Plan plan = plan_of(random_case(random, k_short));
    // And trees over racks, but no two levels for a few workers.
    ASSERT_EQ(plan.candidates.size(), strategy_names().size() - 1 + 1);
    for (const Candidate& candidate : plan.candidates) {
      if (candidate.prediction) {
        SCOPED_TRACE(candidate.strategy);
        const Prediction& p = *candidate.prediction;
        EXPECT_GT(p.bound_seconds, 0);
        EXPECT_LE(p.bound_seconds, p.lo_seconds * (1 + k_rounding));
        EXPECT_LE(p.lo_seconds, p.mid_seconds);
        EXPECT_LE(p.mid_seconds, p.hi_seconds);
        EXPECT_LE(plan.prediction.mid_seconds, p.mid_seconds);
        ++predicted[candidate.strategy];
      }
    }
  });
  for (const auto& [strategy, count] : predicted) {
    std::cout << strategy << ": " << count << " predictions\n";
  }
}

TEST(PlannerProperty, NamesOfMachinesAndRacksCountForNothing) {
  Differences found;
  std::cout << "seed " << k_seed + 1 << "\n";
  test::for_cases(k_seed + 1, k_networks / 4, [&](test::Random& random) {
    const Case c = random_case(random, k_short);
    std::vector<std::string> names = numbered("box", c.nodes.size());
    std::vector<std::string> racks = numbered("row", c.uplinks.size());
    std::shuffle(names.begin(), names.end(), random);
    std::shuffle(racks.begin(), racks.end(), random);
    compare(plan_of(c), plan_of(c, in_order(c.nodes.size()), names, racks), found);
    for (const auto& [strategy, most] : found) {
      EXPECT_LE(std::max(most.bound, most.prediction), k_rounding) << strategy;
    }
  });
  print(found);
}

/// Which machine gets one part more than another depends on their order where they are equals, and
/// so does who is served first: less, the more parts there are. Of gradients of a few parts it is
/// most of the time.
TEST(PlannerProperty, TheOrderOfTheMachinesCountsForLessThanAFewParts) {
  Differences found;
  std::cout << "seed " << k_seed + 2 << "\n";
  test::for_cases(k_seed + 2, k_long_networks, [&](test::Random& random) {
    const Case c = random_case(random, k_long);
    std::vector<std::size_t> order = in_order(c.nodes.size());
    std::shuffle(order.begin(), order.end(), random);
    compare(plan_of(c),
            plan_of(c, order, numbered("m", c.nodes.size()), numbered("r", c.uplinks.size())),
            found);
    for (const auto& [strategy, most] : found) {
      EXPECT_LE(std::max(most.bound, most.prediction), k_of_a_few_parts) << strategy;
    }
  });
  print(found);
}

} // namespace
} // namespace reckon
