// SPDX-License-Identifier: Apache-2.0
#include "probe/racks.hpp"

#include "stats/resample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace reckon {
namespace {

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

/// A cluster as a fair network would run a round: pairs in one rack get their ports; those that
/// leave a rack share its uplink equally.
struct Cluster {
  std::vector<int> rack_of;
  std::vector<double> port;
  double uplink = 0;

  [[nodiscard]] RoundRates run(const Pairing& pairs, std::mt19937_64& random) const {
    std::map<int, int> leaving;
    for (const auto& [a, b] : pairs) {
      if (rack_of[at(a)] != rack_of[at(b)]) {
        ++leaving[rack_of[at(a)]];
        ++leaving[rack_of[at(b)]];
      }
    }
    RoundRates round;
    for (const auto& [a, b] : pairs) {
      double rate = std::min(port[at(a)], port[at(b)]);
      if (rack_of[at(a)] != rack_of[at(b)]) {
        rate = std::min(rate, uplink / std::max(leaving[rack_of[at(a)]], leaving[rack_of[at(b)]]));
      }
      const double noise = 0.97 + 0.06 * static_cast<double>(uniform_index(random, 1001)) / 1000;
      round.push_back({a, b, rate * noise});
    }
    return round;
  }
};

/// The racks' numbers do not matter, only who is with whom.
std::vector<int> renumbered(const std::vector<int>& racks) {
  std::map<int, int> number;
  std::vector<int> out;
  for (const int r : racks) {
    out.push_back(number.try_emplace(r, static_cast<int>(number.size())).first->second);
  }
  return out;
}

std::vector<int> found_in(const Cluster& cluster, std::mt19937_64& random) {
  const int n = static_cast<int>(cluster.port.size());
  std::vector<RoundRates> rounds;
  for (const Pairing& pairs : round_robin(n)) {
    rounds.push_back(cluster.run(pairs, random));
  }
  for (int i = 0; i < 2; ++i) {
    rounds.push_back(cluster.run(halves_of(shuffled(n, random)), random));
  }
  std::vector<int> racks = find_racks(rounds, cluster.port);
  for (int check = 0; check < 3; ++check) { // as the probe does
    rounds.push_back(cluster.run(across_racks(racks, random), random));
    rounds.push_back(cluster.run(within_racks(racks, random), random));
    racks = find_racks(rounds, cluster.port);
  }
  return racks;
}

TEST(Racks, NoneWhereNothingIsInTheWay) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Cluster cluster;
    const std::size_t n = 2 + uniform_index(random, 15);
    for (std::size_t i = 0; i < n; ++i) {
      cluster.rack_of.push_back(0);
      cluster.port.push_back(1e6 * static_cast<double>(10 + uniform_index(random, 90))); // unequal
    }
    EXPECT_EQ(found_in(cluster, random), std::vector<int>(n, 0));
  }
}

TEST(Racks, AreFoundFromTheirThinUplinks) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Cluster cluster;
    const std::size_t racks = 2 + uniform_index(random, 2); // 2 or 3, of 3 to 6 machines
    const std::size_t each = 3 + uniform_index(random, 4);
    for (std::size_t i = 0; i < racks * each; ++i) {
      cluster.rack_of.push_back(static_cast<int>(i % racks)); // not in blocks
      cluster.port.push_back(24e6);
    }
    // From half of one port to the ports of a third of the rack: oversubscribed 3:1 and more.
    cluster.uplink =
        24e6 * (0.5 + 0.1 * static_cast<double>(uniform_index(random, 1 + 10 * (each / 3) - 5)));
    EXPECT_EQ(found_in(cluster, random), renumbered(cluster.rack_of));
  }
}

TEST(Racks, APairThatWasHinderedOnceIsApartThoughItsUplinkWasFreeAnotherTime) {
  // In the second round the uplink of other racks is busy, that of machines 0 and 1 is not.
  const std::vector<double> port(4, 100);
  const std::vector<int> racks = find_racks({{{0, 1, 10}}, {{0, 1, 100}, {2, 3, 10}}}, port);
  EXPECT_NE(racks[0], racks[1]);
  EXPECT_NE(racks[2], racks[3]);
}

TEST(Racks, AHinderedPairIsSlowForBothPorts) {
  const std::vector<double> port{100, 50};
  EXPECT_FALSE(hindered({0, 1, 50}, port)); // the slower port is the limit
  EXPECT_FALSE(hindered({0, 1, 43}, port)); // 86 % of it
  EXPECT_TRUE(hindered({0, 1, 42}, port));  // 84 %
}

TEST(Racks, PairingsKeepToTheRacks) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<int> rack_of;
    const std::size_t n = 2 + uniform_index(random, 14);
    for (std::size_t i = 0; i < n; ++i) {
      rack_of.push_back(static_cast<int>(uniform_index(random, 3)));
    }
    rack_of = renumbered(rack_of);
    const auto disjoint = [](const Pairing& pairs) {
      std::set<int> seen;
      for (const auto& [a, b] : pairs) {
        EXPECT_TRUE(seen.insert(a).second);
        EXPECT_TRUE(seen.insert(b).second);
      }
    };
    const auto apart = [&](const Pairing& pairs) {
      for (const auto& [a, b] : pairs) {
        EXPECT_NE(rack_of[at(a)], rack_of[at(b)]);
      }
      disjoint(pairs);
    };
    const Pairing across = across_racks(rack_of, random);
    apart(across);
    apart(rack_bisection(rack_of));
    for (const auto& [a, b] : within_racks(rack_of, random)) {
      EXPECT_EQ(rack_of[at(a)], rack_of[at(b)]);
    }
    disjoint(within_racks(rack_of, random));
    std::size_t largest = 0;
    for (int rack = 0; rack <= *std::max_element(rack_of.begin(), rack_of.end()); ++rack) {
      const auto size = static_cast<std::size_t>(std::count(rack_of.begin(), rack_of.end(), rack));
      largest = std::max(largest, size);
      const Pairing out = out_of_rack(rack_of, rack);
      apart(out);
      EXPECT_EQ(out.size(), std::min(size, n - size));
      for (const auto& [a, b] : out) {
        EXPECT_EQ(rack_of[at(a)], rack);
      }
    }
    // A perfect matching across exists as long as no rack has more than half of the machines.
    EXPECT_EQ(across.size(), std::min(n / 2, n - largest));
  }
}

TEST(Bisection, IsWhatTheSlowerPortsOfThePairsAllow) {
  // min(10, 20) + min(5, 7) = 15
  EXPECT_DOUBLE_EQ(full_bisection({{0, 1}, {2, 3}}, {10, 20, 5, 7}), 15);
  EXPECT_DOUBLE_EQ(full_bisection({}, {}), 0);
}

} // namespace
} // namespace reckon
