// SPDX-License-Identifier: Apache-2.0
#include "documents/contradictions.hpp"

#include "documents/cells.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* k_tcp = "tcp;ofi_rxm";

Cell& add(Profile& profile, const char* test, const std::string& from, const std::string& to,
          double rate, const char* direction = k_two_way) {
  Cell& cell = profile.cells.emplace_back();
  cell.key = {.test = test, .from = from, .to = to, .transport = k_tcp, .direction = direction};
  cell.unit = k_bytes_per_second;
  cell.samples = {rate, rate, rate};
  summarize_cell(cell);
  return cell;
}

/// Four machines of 100 B/s a port and all that a probe measures of them, without noise.
Profile cluster() {
  Profile profile;
  MachineGroup group;
  group.id = "m0";
  group.members = {"w0", "w1", "w2", "w3"};
  group.count = 4;
  profile.machines = {group};
  for (const std::string& from : group.members) {
    add(profile, k_fan_in, from, "", 100);
    add(profile, k_fan_out, from, "", 100);
    for (const std::string& to : group.members) {
      if (from != to) {
        add(profile, k_pair_bandwidth, from, to, 104);
        add(profile, k_pair_bandwidth, from, to, 130, k_one_way); // alone a port may do more
      }
    }
  }
  add(profile, k_port_bandwidth, "m0", "", 100);
  add(profile, k_bisection_random, "", "", 203).ceiling = Ceiling{"the ports", 200};
  add(profile, k_uplink, "rack0", "", 150).ceiling = Ceiling{"the ports inside", 200};
  return profile;
}

Cell& cell(Profile& profile, const char* test, const std::string& from,
           const std::string& to = "") {
  for (Cell& c : profile.cells) {
    if (c.key.test == test && c.key.from == from && c.key.to == to &&
        c.key.direction == k_two_way) {
      return c;
    }
  }
  ADD_FAILURE() << test << ' ' << from << ' ' << to;
  return profile.cells.front();
}

std::vector<std::string> found(const Profile& profile) {
  std::vector<std::string> all;
  for (const Contradiction& c : contradictions_of(profile)) {
    all.push_back(fmt::format("{} {} {} {} > {} {}", c.cell->key.test, c.cell->key.from,
                              c.cell->key.to, c.cell->p50, c.limited_by, c.limit));
  }
  return all;
}

TEST(Contradictions, AreNoneWhereRatesDifferByTheirNoise) {
  EXPECT_THAT(found(cluster()), IsEmpty());
}

TEST(Contradictions, APairIsHeldAgainstWhatOneEndGivesAndTheOtherTakes) {
  Profile profile = cluster();
  // w1 gives 50 only when it was tried with several peers, and takes as much as before.
  cell(profile, k_fan_out, "w1").p50 = 50;
  EXPECT_THAT(found(profile), ElementsAre("pair_bandwidth w1 w0 104 > the port of w1 50",
                                          "pair_bandwidth w1 w2 104 > the port of w1 50",
                                          "pair_bandwidth w1 w3 104 > the port of w1 50"));
}

TEST(Contradictions, HalvesAndUplinksAreHeldAgainstTheirPorts) {
  Profile profile = cluster();
  cell(profile, k_bisection_random, "").p50 = 232; // 116 % of its ports
  cell(profile, k_uplink, "rack0").p50 = 300;
  EXPECT_THAT(found(profile), ElementsAre("bisection_random   232 > the ports 200",
                                          "uplink_bandwidth rack0  300 > the ports inside 200"));
}

TEST(Contradictions, APortIsNoFasterThanTheNetworkPortsOfWhichItIsMade) {
  Profile profile = cluster();
  add(profile, k_single_port, "m0/port0", "", 45);
  add(profile, k_single_port, "m0/port1", "", 53); // 98: within the noise
  EXPECT_THAT(found(profile), IsEmpty());
  cell(profile, k_single_port, "m0/port1").p50 = 30;
  EXPECT_THAT(found(profile),
              ElementsAre("port_bandwidth m0  100 > its network ports together 75"));
}

TEST(Contradictions, WhatHasNoValueContradictsNothing) {
  Profile profile = cluster();
  Cell& port = cell(profile, k_fan_out, "w1");
  port.p50 = 0;
  port.samples.clear();
  port.status = CellStatus::skipped;
  EXPECT_THAT(found(profile), IsEmpty());
}

} // namespace
} // namespace reckon
