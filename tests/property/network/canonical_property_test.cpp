// SPDX-License-Identifier: Apache-2.0
//
// The canonical order of networks does not depend on how they are numbered and named.
#include "documents/profile.hpp"
#include "network/canonical.hpp"
#include "support/cases.hpp"
#include "support/inside_profiles.hpp"
#include "support/network_cases.hpp"
#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

namespace reckon {
namespace {

constexpr std::uint64_t k_seed = 20260418;
constexpr int k_cases = support::cases(250);

void expect_canonical(const Network& network, test::Random& random) {
  const CanonicalNetwork first = canonical_order(network);
  const std::string text = test::text_of(first.network);
  // It is in canonical order, so that order changes nothing any more.
  ASSERT_EQ(test::text_of(canonical_order(first.network).network), text);
  for (int i = 0; i < 3; ++i) {
    std::vector<std::size_t> place_now;
    const Network other = test::renumbered(network, random, &place_now);
    const CanonicalNetwork again = canonical_order(other);
    ASSERT_EQ(test::text_of(again.network), text);
    for (std::size_t p = 0; p < network.places.size(); ++p) { // what moves is the place itself
      ASSERT_EQ(again.network.places[again.place_now[place_now[p]]].id,
                other.places[place_now[p]].id);
      ASSERT_EQ(first.network.places[first.place_now[p]].worker, network.places[p].worker);
    }
  }
}

TEST(CanonicalOrder, OfRandomMachinesInAnyOrder) {
  std::cout << "seed " << k_seed << ", " << k_cases << " cases\n";
  test::for_cases(k_seed, k_cases, [](test::Random& random) {
    Profile profile = test::random_inside_profile(random, 4);
    const std::size_t boxes = random.whole(1, 3), servers = random.below(3);
    profile.machines.front().count = boxes;
    profile.machines.push_back({.id = "s", .name = "servers", .count = 2});
    test::add_link_rate(profile, "port_bandwidth", "m0", "", random.uniform(1e9, 20e9));
    test::add_link_rate(profile, "port_bandwidth", "s", "", random.uniform(1e9, 20e9));
    std::vector<OpenMachine> machines;
    const bool memories = random.coin();
    for (std::size_t b = 0; b < boxes; ++b) {
      OpenMachine& machine = machines.emplace_back(OpenMachine{"m0", b, {}, {}});
      for (const TopologyObject& object : profile.topology.objects) {
        if (object.kind == ObjectKind::gpu) {
          machine.workers.push_back(object.id);
        } else if (object.kind == ObjectKind::numa_node && memories) {
          machine.relays.push_back(object.id);
        }
      }
    }
    for (std::size_t s = 0; s < servers; ++s) {
      machines.push_back({"s", s, {}, {}, false});
    }
    for (MachineGroup& group : profile.machines) { // some racks, one of them with a known uplink
      group.rack = random.coin() ? "rack 0" : "rack 1";
    }
    if (random.coin()) {
      test::add_link_rate(profile, "uplink_bandwidth", "rack 0", "", random.uniform(1e9, 20e9));
    }
    const Network network = network_between_machines(profile, machines, "");
    expect_canonical(network, random);
    std::shuffle(machines.begin(), machines.end(), random);
    ASSERT_EQ(
        test::text_of(canonical_order(network_between_machines(profile, machines, "")).network),
        test::text_of(canonical_order(network).network));
  });
}

TEST(CanonicalOrder, OfMachinesThatAreAlikeButForAFewRates) {
  std::cout << "seed " << k_seed << ", " << k_cases << " cases\n";
  test::for_cases(k_seed, k_cases, [](test::Random& random) {
    Network network = test::equal_machines(random.whole(1, 4), random.whole(1, 4));
    for (std::uint64_t changes = random.below(4); changes > 0; --changes) {
      Station& station = network.stations[random.below(network.stations.size())];
      station.bytes_per_second *= random.coin() ? 0.5 : 2; // some of them equal again
    }
    if (random.coin()) {
      network.collective = Collective::reduce;
      network.root = random.below(network.workers);
    }
    expect_canonical(network, random);
  });
}

} // namespace
} // namespace reckon
