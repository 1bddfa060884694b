// SPDX-License-Identifier: Apache-2.0
#include "probe/racks.hpp"

#include "stats/resample.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace reckon {
namespace {

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

TEST(Ports, CountWhatWasReachedTwice) {
  // Machine 0 did 30 once (a pause worked off) and 12 twice; 1 had its 30 with 0 alone; 2 and 3 did
  // 12; 4 was in one round only, 5 in none.
  const std::vector<RoundRates> rounds{
      {{0, 1, 30}, {2, 3, 12}}, {{0, 2, 12}, {1, 3, 11}}, {{0, 3, 12}, {1, 2, 12}}, {{3, 4, 7}}};
  EXPECT_EQ(ports_seen_twice(rounds, 6), (std::vector<double>{12, 12, 12, 12, 7, 0}));
}

TEST(Ports, OfWhichTheBestWasSeenOnceAreMeasuredAgain) {
  // 0 and 1 did 30 with each other and 12 else. 11 of 12 is near enough for 2 and 3; 4 has done 7
  // once, with 3.
  std::vector<RoundRates> rounds{{{0, 1, 30}, {2, 3, 12}}, {{0, 2, 11}, {1, 3, 11}}, {{3, 4, 7}}};
  EXPECT_EQ(seen_once(rounds, 5), (Pairing{{0, 1}, {3, 4}}));
  rounds.push_back({{0, 1, 26}, {3, 4, 7}}); // 87 % of 30
  EXPECT_EQ(seen_once(rounds, 5), Pairing{});
  rounds.back()[0].bytes_per_s = 25; // 83 %
  EXPECT_EQ(seen_once(rounds, 5), (Pairing{{0, 1}}));
  EXPECT_EQ(seen_once({{{0, 1, 5}, {2, 3, 5}}}, 4), (Pairing{{0, 1}, {2, 3}}));
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
    rack_of = numbered(rack_of);
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
