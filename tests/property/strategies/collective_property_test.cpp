// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/forest/program.hpp"
#include "support/cases.hpp"
#include "support/inside_profiles.hpp"
#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <vector>

namespace reckon {
namespace {

constexpr std::uint64_t k_seed = 2711;
constexpr int k_cases = support::cases(250);
// The solver keeps its bounds to 1e-9, the search ends within 1e-9 of the certificate.
constexpr double k_precision = 1e-7;
constexpr Collective k_halves[] = {Collective::reduce_scatter, Collective::all_gather,
                                   Collective::broadcast, Collective::reduce};

using Parents = std::vector<std::int64_t>;

Network random_network(test::Random& random, std::size_t gpus, bool relays) {
  const Profile profile = test::random_inside_profile(random, gpus);
  InsideOptions options;
  if (!relays) {
    options.relays = std::vector<std::string>();
  }
  Network network = network_inside_machine(profile, "m0", options);
  network.collective = k_halves[random.below(4)];
  network.root = has_root(network.collective) ? random.below(network.workers) : 0;
  return network;
}

/// All trees of workers with this root: every choice of parents that has no circle.
std::vector<Parents> all_trees(const Network& network, std::size_t root) {
  const std::size_t n = network.workers;
  std::vector<Parents> out;
  std::vector<std::size_t> digits(n, 0);
  for (bool more = true; more;) {
    Parents parents(network.places.size(), -1);
    bool valid = digits[root] == root;
    for (std::size_t v = 0; v < n; ++v) {
      parents[v] = static_cast<std::int64_t>(digits[v]);
      std::size_t at = v;
      for (std::size_t steps = 0; at != root && steps < n; ++steps) {
        at = digits[at];
      }
      valid = valid && at == root;
      const bool there = network.ways[v][digits[v]].has_value();
      const bool back = network.ways[digits[v]][v].has_value();
      valid = valid && (v == root || (sums(network.collective) ? there : back));
    }
    if (valid) {
      out.push_back(parents);
    }
    std::size_t digit = 0;
    while (digit < n && ++digits[digit] == n) {
      digits[digit++] = 0;
    }
    more = digit < n;
  }
  return out;
}

/// What a half puts on the stations, counted here: nothing of loads_of.
std::vector<double> loads_of(const Network& network, const Parents& parents) {
  std::vector<double> loads(network.stations.size(), 0);
  const auto add = [&](const Uses& uses, double times) {
    for (const Use& use : uses) {
      loads[use.station] += times * use.amount;
    }
  };
  for (std::size_t v = 0; v < network.workers; ++v) {
    const auto p = static_cast<std::size_t>(parents[v]);
    if (p != v) {
      add(sums(network.collective) ? *network.ways[v][p] : *network.ways[p][v], 1);
      if (sums(network.collective)) { // one stream more at the parent, which has its own
        add(network.add[p], 1);
      }
    }
  }
  return loads;
}

TEST(CollectiveProperty, TheOptimumIsTheBestOfAllTreesOfFourPlaces) {
  int compared = 0;
  test::for_cases<test::Random>(k_seed, k_cases, [&](test::Random& random) {
    const Network network = random_network(random, 4, false);
    std::vector<double> capacities, background;
    for (const Station& station : network.stations) {
      capacities.push_back(station.bytes_per_second);
      background.push_back(station.background);
    }
    const std::vector<double> wanted = network.root_shares();
    SharesProgram program(capacities, background, wanted);
    bool possible = true;
    for (std::size_t root = 0; root < wanted.size(); ++root) {
      const std::vector<Parents> trees =
          wanted[root] > 0 ? all_trees(network, root) : std::vector<Parents>();
      possible = possible && (wanted[root] == 0 || !trees.empty());
      for (const Parents& parents : trees) {
        program.add(loads_of(network, parents), root);
      }
    }
    if (!possible) {
      EXPECT_THROW(static_cast<void>(solve_forest(network, 0.01, Gains::left_out)), Error);
      return;
    }
    const double expected = program.solve().seconds_per_byte;
    const Forest forest = solve_forest(network, 0.01, Gains::left_out);
    EXPECT_NEAR(forest.optimum_seconds_per_byte, expected, k_precision * expected);
    EXPECT_NEAR(forest.certificate_seconds_per_byte, expected, k_precision * expected);
    ++compared;
  });
  std::cout << "seed " << k_seed << ": " << compared << " machines compared with all trees\n";
  EXPECT_GE(compared, k_cases / 2);
}

TEST(CollectiveProperty, BoundCertificateOptimumAndSchemesAreInOrder) {
  std::size_t named = 0;
  test::for_cases<test::Random>(k_seed + 1, k_cases, [&](test::Random& random) {
    const Network network = random_network(random, 7, true);
    Forest forest;
    try {
      forest = solve_forest(network, 0.01, Gains::left_out);
    } catch (const Error&) {
      return; // pairs that cannot copy leave a worker alone
    }
    const double best = forest.optimum_seconds_per_byte;
    EXPECT_LE(forest.bound_seconds_per_byte,
              forest.certificate_seconds_per_byte * (1 + k_precision))
        << forest.bound_by;
    EXPECT_LE(forest.certificate_seconds_per_byte, best * (1 + k_precision));
    EXPECT_NEAR(forest.certificate_seconds_per_byte, best, k_precision * best);
    for (const ForestCandidate& scheme : forest.candidates) {
      EXPECT_GE(scheme.seconds_per_byte, best * (1 - k_precision)) << scheme.name;
    }
    named += forest.candidates.empty() ? 0U : 1U;
    std::vector<double> shares(network.workers, 0);
    for (const SumTree& tree : forest.trees) {
      shares.at(tree.root()) += tree.share;
    }
    const std::vector<double> wanted = network.root_shares();
    for (std::size_t root = 0; root < shares.size(); ++root) {
      EXPECT_NEAR(shares[root], wanted[root], 1e-12) << root;
    }
  });
  std::cout << "seed " << k_seed + 1 << ": " << named << " machines with named schemes\n";
  EXPECT_GE(named, static_cast<std::size_t>(k_cases) / 2);
}

} // namespace
} // namespace reckon
