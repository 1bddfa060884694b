// SPDX-License-Identifier: Apache-2.0
#include "network/canonical.hpp"

#include "support/network_cases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using testing::ElementsAre;
using testing::Not;

/// Places without machines' insides, and between each pair that has a rate a way of its own.
Network network_of(const std::vector<std::vector<double>>& rates) {
  Network out = test::equal_machines(rates.size(), 1);
  out.stations.clear();
  out.links.clear();
  for (std::size_t u = 0; u < rates.size(); ++u) {
    out.add[u].clear();
    for (std::size_t v = 0; v < rates.size(); ++v) {
      out.ways[u][v].reset();
      if (rates[u][v] > 0) {
        out.ways[u][v] = Uses{{out.stations.size(), 1}};
        out.stations.push_back({"way", rates[u][v], "described", 0, rates[u][v], rates[u][v]});
      }
    }
  }
  return out;
}

TEST(CanonicalOrder, TellsPlacesApartByTheirWays) {
  // Rates of a chain, each direction with one of its own: no symmetry. Numbered backwards it is the
  // same network, so each place must come to where its like came.
  const Network forward = network_of({{0, 1, 0}, {2, 0, 3}, {0, 4, 0}});
  const Network backward = network_of({{0, 4, 0}, {3, 0, 2}, {0, 1, 0}});
  const CanonicalNetwork a = canonical_order(forward), b = canonical_order(backward);
  EXPECT_EQ(test::text_of(a.network), test::text_of(b.network));
  EXPECT_THAT(b.place_now, ElementsAre(a.place_now[2], a.place_now[1], a.place_now[0]));
  EXPECT_EQ(a.machine_now, a.place_now); // one place a machine
}

TEST(CanonicalOrder, LeavesNoNumberOfEqualMachinesToChance) {
  std::mt19937_64 random(1);
  const Network network = test::equal_machines(3, 4);
  const std::string text = test::text_of(canonical_order(network).network);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(test::text_of(canonical_order(test::renumbered(network, random)).network), text);
  }
}

TEST(CanonicalOrder, TellsPlacesApartByTheirLatencies) {
  // Nothing but the latency of one way, 2 -> 0, tells these three apart.
  std::mt19937_64 random(1);
  Network network = network_of({{0, 1, 1}, {1, 0, 1}, {1, 1, 0}});
  network.latency_s.assign(3, std::vector<double>(3, 1e-6));
  network.latency_s[2][0] = 2e-6;
  const CanonicalNetwork first = canonical_order(network);
  EXPECT_EQ(first.network.latency_s[first.place_now[2]][first.place_now[0]], 2e-6);
  for (int i = 0; i < 10; ++i) {
    std::vector<std::size_t> now;
    const CanonicalNetwork again = canonical_order(test::renumbered(network, random, &now));
    EXPECT_EQ(test::text_of(again.network), test::text_of(first.network));
    for (std::size_t place = 0; place < 3; ++place) {
      EXPECT_EQ(again.place_now[now[place]], first.place_now[place]);
    }
  }
}

TEST(CanonicalOrder, TriesPlacesThatRefinementCannotTellApart) {
  // A ring of three and one of four: each place has two neighbours, and so have these. Singling out
  // a place of either gives another network of colours, so it must not depend on which is named
  // first.
  std::vector<std::vector<double>> rates(7, std::vector<double>(7, 0));
  for (std::size_t i = 0; i < 7; ++i) {
    const std::size_t next = i < 3 ? (i + 1) % 3 : 3 + (i - 3 + 1) % 4;
    rates[i][next] = rates[next][i] = 1;
  }
  const Network network = network_of(rates);
  const std::string text = test::text_of(canonical_order(network).network);
  std::mt19937_64 random(2);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(test::text_of(canonical_order(test::renumbered(network, random)).network), text);
  }
}

TEST(CanonicalOrder, KeepsWorkersFirstAndMachinesTogether) {
  Network network = test::equal_machines(2, 2);
  network.places[1].worker = network.places[3].worker = false; // a relay in each machine
  std::swap(network.places[1], network.places[2]);             // workers first: 0 and 1
  std::swap(network.places[1].machine, network.places[2].machine);
  network.workers = 2;
  network.places[1] = {"gpu", true, false, 1};
  network.places[2] = {"relay", false, true, 0};
  network.places[3] = {"relay", false, true, 1};
  const Network out = canonical_order(network).network;
  std::vector<bool> workers;
  std::vector<std::size_t> machines;
  for (const Place& place : out.places) {
    workers.push_back(place.worker);
    machines.push_back(place.machine);
  }
  EXPECT_THAT(workers, ElementsAre(true, true, false, false));
  EXPECT_THAT(machines, ElementsAre(0, 1, 0, 1));
}

TEST(CanonicalOrder, DoesNotLookAtNames) {
  Network network = network_of({{0, 1, 0}, {2, 0, 3}, {0, 4, 0}});
  const CanonicalNetwork before = canonical_order(network);
  network.machines[0].name = "z";
  network.places[1].id = "a";
  network.stations[2].name = "b";
  const CanonicalNetwork after = canonical_order(network);
  EXPECT_EQ(after.place_now, before.place_now);
  EXPECT_EQ(after.network.machines[after.machine_now[0]].name, "z"); // names go with their machines
  EXPECT_EQ(after.network.places[after.place_now[1]].id, "a");
}

TEST(CanonicalOrder, TheRootCountsWhereThereIsOne) {
  Network network = test::equal_machines(1, 4);
  network.collective = Collective::broadcast;
  network.root = 2;
  const CanonicalNetwork out = canonical_order(network);
  EXPECT_EQ(out.network.root, out.place_now[2]);
  network.root = 0;
  EXPECT_EQ(test::text_of(canonical_order(network).network), test::text_of(out.network));
}

TEST(CanonicalOrder, ARateThatDiffersChangesTheNetwork) {
  const Network even = test::equal_machines(2, 2);
  Network uneven = even;
  uneven.stations[0].bytes_per_second *= 2;
  EXPECT_THAT(test::text_of(canonical_order(uneven).network),
              Not(test::text_of(canonical_order(even).network)));
}

} // namespace
} // namespace reckon
