// SPDX-License-Identifier: Apache-2.0
#include "verdict/suspects.hpp"

#include "support/random_cases.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace reckon {
namespace {

using test::Random;

constexpr double k_healthy = 24e9;

/// Machines, or NICs of machines, with faults. Two places reach the least of theirs and of the path
/// between them, within 2 %, and what is bad within 15 %.
struct FaultyCluster {
  std::vector<std::string> places;
  std::map<std::string, double> rate;   ///< of a bad place
  std::map<PairOfPlaces, double> path;  ///< of a bad path, both ways
  std::vector<PairOfPlaces> possible{}; ///< pairs that a first test would take: of one rail

  [[nodiscard]] double at(const std::string& place) const {
    const auto found = rate.find(place);
    return found == rate.end() ? k_healthy : found->second;
  }
  [[nodiscard]] PairRate measure(const PairOfPlaces& pair, Random& random) const {
    const auto& [a, b] = pair;
    double value = std::min(at(a), at(b));
    for (const auto& key : {PairOfPlaces(a, b), PairOfPlaces(b, a)}) {
      const auto found = path.find(key);
      value = found == path.end() ? value : std::min(value, found->second);
    }
    const double noise = value < k_healthy ? 0.15 : 0.02;
    return {a, b, value * random.uniform(1 - noise, 1 + noise)};
  }
};

std::string rail_of(const std::string& place) {
  return place.substr(std::min(place.find('/'), place.size()));
}

/// 8 to 16 machines, or 5 to 8 of 4 NICs each, of which 1 to 3 are bad; in a quarter of the cases a
/// path between two others, too.
FaultyCluster faulty_cluster(Random& random) {
  FaultyCluster c;
  const bool rails = random() % 2 == 0;
  const std::size_t machines = rails ? 5 + random() % 4 : 8 + random() % 9;
  for (std::size_t m = 0; m < machines; ++m) {
    for (std::size_t nic = 0; nic < (rails ? 4U : 1U); ++nic) {
      c.places.push_back(rails ? fmt::format("m{}/mlx5_{}", m, nic) : fmt::format("m{}", m));
    }
  }
  const auto slow = [&] { return k_healthy * random.uniform(0.2, 0.65); };
  for (std::size_t bad = 1 + random() % 3; c.rate.size() < bad;) {
    c.rate[c.places[random() % c.places.size()]] = slow();
  }
  for (std::size_t i = 0; i < c.places.size(); ++i) {
    for (std::size_t j = i + 1; j < c.places.size(); ++j) {
      if (rail_of(c.places[i]) == rail_of(c.places[j])) {
        c.possible.emplace_back(c.places[i], c.places[j]);
      }
    }
  }
  while (random() % 4 == 0 && c.path.empty()) {
    const PairOfPlaces pair = c.possible[random() % c.possible.size()];
    if (!c.rate.contains(pair.first) && !c.rate.contains(pair.second)) {
      c.path[pair] = slow();
    }
  }
  return c;
}

/// Every place once or more, every bad path, and one pair without a fault.
std::vector<PairRate> first_logs(const FaultyCluster& c, Random& random) {
  std::set<PairOfPlaces> pairs;
  const auto is_well = [&](const PairOfPlaces& pair) {
    return !c.rate.contains(pair.first) && !c.rate.contains(pair.second) && !c.path.contains(pair);
  };
  const auto covers = [&](const std::string& place) {
    return std::ranges::any_of(
        pairs, [&](const auto& pair) { return pair.first == place || pair.second == place; });
  };
  for (const auto& [pair, rate] : c.path) {
    pairs.insert(pair);
  }
  while (!std::ranges::all_of(c.places, covers) || std::ranges::none_of(pairs, is_well)) {
    const PairOfPlaces pair = c.possible[random() % c.possible.size()];
    if (!covers(pair.first) || !covers(pair.second) || random() % 20 == 0) {
      pairs.insert(pair);
    }
  }
  std::vector<PairRate> rates;
  for (const PairOfPlaces& pair : pairs) {
    rates.push_back(c.measure(pair, random));
  }
  return rates;
}

TEST(SuspectsProperty, TheBadOnesAreAmongTheSuspectsAndCertainOnceTheNextPairsAreMeasured) {
  std::map<std::size_t, int> by_passes;
  std::size_t more = 0;
  std::size_t paths = 0;
  test::for_cases(20261129, 1000, [&](Random& random) {
    const FaultyCluster cluster = faulty_cluster(random);
    std::set<PairOfPlaces> bad;
    for (const auto& [place, rate] : cluster.rate) {
      bad.emplace(place, "");
    }
    for (const auto& [pair, rate] : cluster.path) {
      bad.insert(pair);
    }
    paths += cluster.path.size();
    std::vector<PairRate> rates = first_logs(cluster, random);
    std::size_t passes = 0;
    PairVerdict verdict = judge_pairs(rates, 0.1);
    while (true) {
      std::set<PairOfPlaces> suspects;
      for (const Suspect& suspect : verdict.suspects) {
        suspects.emplace(suspect.a, suspect.b);
      }
      for (const PairOfPlaces& one : bad) {
        ASSERT_TRUE(suspects.contains(one)) << one.first << " " << one.second << " is acquitted";
      }
      if (verdict.next.empty()) {
        break;
      }
      ASSERT_LT(++passes, 5U) << "what is to be measured never ends";
      for (const PairOfPlaces& pair : verdict.next) {
        rates.push_back(cluster.measure(pair, random));
        ++more;
      }
      verdict = judge_pairs(rates, 0.1);
    }
    std::set<PairOfPlaces> certain;
    for (const Suspect& suspect : verdict.suspects) {
      EXPECT_TRUE(suspect.certain) << suspect.a << " " << suspect.b;
      certain.emplace(suspect.a, suspect.b);
    }
    EXPECT_EQ(certain, bad);
    ++by_passes[passes];
  });
  // The pairs that are named first are enough wherever two good partners of the rail are known.
  EXPECT_GT(by_passes[0] + by_passes[1], 950) << testing::PrintToString(by_passes);
  EXPECT_LT(more, 8000U);
  EXPECT_GT(paths, 100U);
}

TEST(SuspectsProperty, NothingIsSuspectWhereOnlyNoiseDiffers) {
  test::for_cases(20261130, 300, [&](Random& random) {
    FaultyCluster cluster = faulty_cluster(random);
    cluster.rate.clear();
    cluster.path.clear();
    const PairVerdict verdict = judge_pairs(first_logs(cluster, random), 0.1);
    EXPECT_TRUE(verdict.suspects.empty());
    EXPECT_TRUE(verdict.next.empty());
    EXPECT_FALSE(verdict.differ);
  });
}

TEST(SuspectsProperty, RoundsMeasureEachPairOnceAndNoMachineTwiceAtATime) {
  test::for_cases(20261201, 300, [&](Random& random) {
    const FaultyCluster cluster = faulty_cluster(random);
    const std::vector<PairOfPlaces> next = judge_pairs(first_logs(cluster, random), 0.1).next;
    std::multiset<PairOfPlaces> all;
    for (const auto& round : rounds_of(next)) {
      std::set<std::string> machines;
      for (const auto& [a, b] : round) {
        all.emplace(a, b);
        EXPECT_TRUE(machines.insert(a.substr(0, a.find('/'))).second);
        EXPECT_TRUE(machines.insert(b.substr(0, b.find('/'))).second);
      }
    }
    EXPECT_EQ(all, std::multiset<PairOfPlaces>(next.begin(), next.end()));
  });
}

} // namespace
} // namespace reckon
