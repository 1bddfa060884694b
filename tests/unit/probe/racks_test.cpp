// SPDX-License-Identifier: Apache-2.0
#include "probe/racks.hpp"

#include "stats/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
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

TEST(Ports, ThatAreLessThanWhatPassedThemAreDoubtful) {
  const std::vector<double> port{100, 100, 50, 100}, seen{102, 104, 0, 100};
  // 100 is 98 % of 102, which is noise, and 96 % of 104.
  EXPECT_EQ(doubtful_ports(port, seen, {}), (std::vector<int>{1}));
  // A port of which nothing is known is not less than anything; one that was only seen is.
  EXPECT_EQ(doubtful_ports({0, 0}, {0, 70}, {}), (std::vector<int>{1}));
  // Pairs 0-2 and 1-3 carry min(100, 50) + min(100, 100) = 150, with noise 157.5.
  const Pairing halves{{0, 2}, {1, 3}};
  EXPECT_EQ(doubtful_ports(port, port, {{halves, 157}}), (std::vector<int>{}));
  EXPECT_EQ(doubtful_ports(port, port, {{halves, 158}}), (std::vector<int>{0, 1, 2, 3}));
  // Of an uplink each port inside counts by itself: 100 + 50, with noise 157.5.
  const Pairing inside{{0, 0}, {2, 2}};
  EXPECT_EQ(doubtful_ports(port, port, {{halves, 100}, {inside, 158}}), (std::vector<int>{0, 2}));
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

double between(std::mt19937_64& random, double low, double high) {
  return low + (high - low) * uniform_unit(random);
}

/// A cluster as a fair network would run a round: pairs in one rack get their ports; those that
/// leave a rack share its uplink equally. Machines are busy for a while: what they do then is a
/// share of it.
struct Cluster {
  std::vector<int> rack_of;
  std::vector<double> port;
  double uplink = 0;
  double busy = 0;         ///< chance that a machine's busy time begins, in each round
  bool all_alike = false;  ///< all machines are busy at the same times: they share processors
  double caught_up = 0;    ///< chance that what a pause left behind is counted as rate
  std::vector<int> left;   ///< rounds that each one is busy for
  std::vector<double> has; ///< share of its rate meanwhile

  void begin_round(std::mt19937_64& random) {
    left.resize(port.size(), 0);
    has.resize(port.size(), 1);
    for (std::size_t m = 0; m < port.size(); ++m) {
      if (left[m] > 0) {
        --left[m];
      } else if (uniform_unit(random) < busy) {
        left[m] = 8 + static_cast<int>(uniform_index(random, 25));
        has[m] = between(random, 0.3, 0.8);
      }
      if (all_alike) {
        left[m] = left[0];
        has[m] = has[0];
      }
    }
  }

  RoundRates run(const Pairing& pairs, std::mt19937_64& random) {
    begin_round(random);
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
      const auto share = [&](int m) { return left[at(m)] > 0 ? has[at(m)] : 1.0; };
      const double more = uniform_unit(random) < caught_up ? between(random, 1.2, 1.8) : 1.0;
      rate *= std::min(share(a), share(b)) * more * between(random, 0.97, 1.03);
      round.push_back({a, b, rate});
    }
    return round;
  }
};

/// What the probe does with it.
RackSearch search_in(Cluster& cluster, std::mt19937_64& random) {
  const int n = static_cast<int>(cluster.port.size());
  std::vector<RoundRates> rounds;
  for (const Pairing& pairs : round_robin(n)) {
    rounds.push_back(cluster.run(pairs, random));
  }
  for (int again = 0; again < 3 && !seen_once(rounds, n).empty(); ++again) {
    rounds.push_back(cluster.run(seen_once(rounds, n), random));
  }
  const std::vector<double> ports = ports_seen_twice(rounds, n);
  const auto slow = [&](const RoundRates& round) {
    return std::any_of(round.begin(), round.end(),
                       [&](const PairRate& pair) { return hindered(pair, ports); });
  };
  for (int i = 0; i < 3; ++i) {
    rounds.push_back(cluster.run(halves_of(shuffled(n, random)), random));
  }
  for (RoundRates& round : rounds) {
    if (slow(round)) {
      Pairing pairs;
      for (const PairRate& pair : round) {
        pairs.emplace_back(pair.a, pair.b);
      }
      keep_best(round, cluster.run(pairs, random));
    }
  }
  return search_racks(
      rounds, ports, random, [&](const Pairing& pairs) { return cluster.run(pairs, random); },
      [] { return false; });
}

/// 4 to 16 machines.
Cluster without_racks(std::mt19937_64& random, double slowest_port) {
  Cluster cluster;
  const std::size_t n = 4 + uniform_index(random, 13);
  for (std::size_t i = 0; i < n; ++i) {
    cluster.rack_of.push_back(0);
    cluster.port.push_back(between(random, 100e6 * slowest_port, 100e6));
  }
  return cluster;
}

/// 2 or 3 racks of 4 to 6 machines, not in blocks, whose ports are `oversubscribed` times as fast
/// as their uplink.
Cluster with_racks(std::mt19937_64& random, double oversubscribed) {
  Cluster cluster;
  const std::size_t racks = 2 + uniform_index(random, 2), each = 4 + uniform_index(random, 3);
  for (std::size_t i = 0; i < racks * each; ++i) {
    cluster.rack_of.push_back(static_cast<int>(i % racks));
    cluster.port.push_back(24e6);
  }
  cluster.uplink = 24e6 * static_cast<double>(each) / oversubscribed;
  return cluster;
}

constexpr int k_seeds = 200;

struct Found {
  int right = 0;
  int certain = 0;
  int misled = 0; ///< wrong, and nobody is told
};

/// `make` is to make a cluster of the generator.
template <class Make>
Found found_in(Make&& make) {
  Found found;
  for (int seed = 0; seed < k_seeds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    Cluster cluster = make(random);
    const RackSearch search = search_in(cluster, random);
    const int racks = *std::max_element(search.rack_of.begin(), search.rack_of.end()) + 1;
    const bool right = search.rack_of == numbered(cluster.rack_of);
    const bool certain = search.settled && racks == search.looked_like;
    found.right += right ? 1 : 0;
    found.certain += certain ? 1 : 0;
    found.misled += !right && certain ? 1 : 0;
    if (!right) {
      std::printf("seed %d: %d racks%s\n", seed, racks, certain ? "" : ", doubtful");
    }
  }
  return found;
}

TEST(RackSearch, FindsNoneWhereNothingIsInTheWay) {
  // Also beside ports of a tenth of the others' rate.
  const Found found = found_in([](auto& random) { return without_racks(random, 0.1); });
  EXPECT_EQ(found.right, k_seeds);
}

TEST(RackSearch, FindsThinUplinksAndIsCertainOfThemInQuietClusters) {
  for (const double oversubscribed : {2.0, 3.0, 4.0, 8.0}) {
    SCOPED_TRACE(oversubscribed);
    const Found found = found_in([&](auto& random) { return with_racks(random, oversubscribed); });
    EXPECT_EQ(found.right, k_seeds);
    EXPECT_EQ(found.certain, k_seeds);
  }
}

TEST(RackSearch, TakesNoBusyMachinesForRacks) {
  // Machines are busy for 8 to 32 rounds and do 30 to 80 % then: one now and then, several at most
  // times, or all at once. Of 200 without any check 48 to 173 are right.
  for (const double busy : {0.005, 0.02}) {
    for (const bool alike : {false, true}) {
      SCOPED_TRACE(busy);
      SCOPED_TRACE(alike);
      const Found found = found_in([&](auto& random) {
        Cluster cluster = without_racks(random, 0.5);
        cluster.busy = busy;
        cluster.all_alike = alike;
        return cluster;
      });
      EXPECT_GE(found.right, 188);
      EXPECT_LE(found.misled, 5);
    }
  }
}

TEST(RackSearch, TakesNoPileThatIsWorkedOffForAFasterPort) {
  const Found found = found_in([](auto& random) {
    Cluster cluster = without_racks(random, 0.5);
    cluster.caught_up = 0.02;
    return cluster;
  });
  EXPECT_EQ(found.right, k_seeds);
}

TEST(RackSearch, FindsThinUplinksAmongBusyMachines) {
  const Found found = found_in([](auto& random) {
    Cluster cluster = with_racks(random, 4);
    cluster.busy = 0.005;
    return cluster;
  });
  EXPECT_GE(found.right, 145);
  EXPECT_LE(found.misled, 20);
}

TEST(RackSearch, WithoutTimeForChecksIsNotSettled) {
  std::mt19937_64 random(1);
  std::vector<RoundRates> rounds{{{0, 1, 100}, {2, 3, 100}}, {{0, 2, 40}, {1, 3, 40}}};
  const auto never = [](const Pairing&) -> RoundRates {
    ADD_FAILURE() << "there is no time to measure";
    return {};
  };
  const std::vector<double> port(4, 100);
  const RackSearch search = search_racks(rounds, port, random, never, [] { return true; });
  EXPECT_EQ(search.rack_of, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_FALSE(search.settled);
  EXPECT_TRUE(search_racks(rounds, {100, 100, 40, 40}, random, never, [] { return true; }).settled);
}

const std::vector<double> k_ports(4, 100);
const std::vector<int> k_two_racks{0, 0, 1, 1};

/// Pairs of two racks of two at these rates, and those within at others.
RackCheck check_of(double across, double beside) {
  return {{{0, 2, across}, {1, 3, across}}, {{0, 1, beside}, {2, 3, beside}}};
}

TEST(ConfirmedRacks, AreThoseWhosePairsAreSlowerThanTheirMachines) {
  EXPECT_EQ(confirmed_racks(k_two_racks, {check_of(50, 100)}, k_ports), k_two_racks);
  // As slow within the racks: not the uplink. 85 % is the border.
  EXPECT_EQ(confirmed_racks(k_two_racks, {check_of(50, 50)}, k_ports), std::vector<int>(4, 0));
  EXPECT_EQ(confirmed_racks(k_two_racks, {check_of(43, 50)}, k_ports), std::vector<int>(4, 0));
  EXPECT_EQ(confirmed_racks(k_two_racks, {check_of(42, 50)}, k_ports), k_two_racks);
  EXPECT_EQ(confirmed_racks(k_two_racks, {}, k_ports), k_two_racks);
}

TEST(ConfirmedRacks, GoByMostOfTheChecks) {
  const RackCheck thin = check_of(50, 100), disturbed = check_of(50, 50);
  EXPECT_EQ(confirmed_racks(k_two_racks, {thin, disturbed, thin}, k_ports), k_two_racks);
  EXPECT_EQ(confirmed_racks(k_two_racks, {disturbed, thin, disturbed}, k_ports),
            std::vector<int>(4, 0));
}

TEST(ConfirmedRacks, CompareSharesOfPorts) {
  // Machines 1 and 3 have ports of 20: within racks all pairs do 20, across 0 and 2 do 100 or 50.
  const std::vector<double> ports{100, 20, 100, 20};
  const RackCheck free{{{0, 2, 100}, {1, 3, 20}}, {{0, 1, 20}, {2, 3, 20}}};
  const RackCheck thin{{{0, 2, 50}, {1, 3, 10}}, {{0, 1, 20}, {2, 3, 20}}};
  EXPECT_EQ(confirmed_racks(k_two_racks, {free}, ports), std::vector<int>(4, 0));
  EXPECT_EQ(confirmed_racks(k_two_racks, {thin}, ports), k_two_racks);
}

TEST(ConfirmedRacks, ReleaseAMachineWhosePortWasOverrated) {
  // As of a server with four ports: machine 3 seemed to do 170 with machine 1, which got a rack of
  // its own. Alone they do 120 as well.
  const std::vector<double> ports{120, 170, 120, 170};
  const std::vector<int> racks{0, 1, 0, 0};
  const RackCheck check{{{1, 3, 120}, {0, 2, 120}}, {{0, 2, 120}, {1, 3, 120}}};
  EXPECT_EQ(confirmed_racks(racks, {check, check, check}, ports), std::vector<int>(4, 0));
}

TEST(ConfirmedRacks, KeepBordersThatShowOrWereNotLookedAt) {
  // Racks 0 and 1 are one; 2 is apart from 1, so from both; 2 and 3 did not meet.
  const std::vector<double> ports(8, 100);
  const std::vector<int> racks{0, 0, 1, 1, 2, 2, 3, 3};
  const RackCheck check{{{0, 2, 100}, {3, 4, 30}, {1, 6, 30}},
                        {{0, 1, 100}, {2, 3, 100}, {4, 5, 100}, {6, 7, 100}}};
  EXPECT_EQ(confirmed_racks(racks, {check}, ports), (std::vector<int>{0, 0, 0, 0, 1, 1, 2, 2}));
}

} // namespace
} // namespace reckon
