// SPDX-License-Identifier: Apache-2.0
#include "documents/own_machines.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

Plan plan_of(std::vector<PlanRank> ranks) {
  Plan plan;
  plan.ranks = std::move(ranks);
  return plan;
}

TEST(OwnMachines, PlacesOfOneMachineMayShareAHostAndThoseOfSeveralMayNot) {
  const auto place = [](std::uint64_t number, const char* member, std::uint64_t process) {
    PlanRank rank;
    rank.machine = "m0";
    rank.machine_number = number;
    rank.member = member;
    rank.endpoint = "m0/numa0";
    rank.process = process;
    return rank;
  };
  Plan plan = plan_of({place(0, "w0", 0), place(0, "w0", 1), place(1, "w1", 0), place(2, "s0", 0)});
  EXPECT_TRUE(predicts_own_machines(plan));
  EXPECT_EQ(shared_hosts(plan, {"a", "a", "b", "c"}), "");
  // Ranks 2 and 3 are of different machines, 0 and 1 are not.
  EXPECT_EQ(shared_hosts(plan, {"a", "a", "b", "b"}), "machines s0, w1 shared b");
  plan.ranks[2].member = plan.ranks[3].member = "";
  EXPECT_EQ(shared_hosts(plan, {"a", "a", "b", "b"}), "machines m0.1-2 shared b");
  EXPECT_EQ(shared_hosts(plan, {"b", "a", "a", "b"}),
            "machines m0.1, w0 shared a; machines m0.2, w0 shared b");
  plan.ranks.resize(2);
  EXPECT_FALSE(predicts_own_machines(plan));
  EXPECT_EQ(shared_hosts(plan, {"a", "a"}), "");
}

TEST(OwnMachines, RanksWithPortsHaveAMachineEach) {
  PlanRank rank;
  rank.machine = "m0";
  Plan plan = plan_of({rank, rank, rank});
  EXPECT_FALSE(predicts_own_machines(plan)); // processes of the one that was measured
  EXPECT_EQ(shared_hosts(plan, {"a", "a", "a"}), "");
  for (PlanRank& r : plan.ranks) {
    r.port_bytes_per_second = 1e9;
  }
  EXPECT_TRUE(predicts_own_machines(plan));
  EXPECT_EQ(shared_hosts(plan, {"a", "b", "c"}), "");
  EXPECT_EQ(shared_hosts(plan, {"a", "b", "b"}), "ranks 1-2 shared b");
}

TEST(OwnMachines, AMachineGoesByItsOwnName) {
  PlanRank rank;
  rank.machine = "m0";
  EXPECT_EQ(rank.place_name(), "m0");
  rank.machine_number = 1;
  EXPECT_EQ(rank.place_name(), "m0.1");
  rank.endpoint = "m0/numa0";
  rank.process = 2;
  EXPECT_EQ(rank.place_name(), "m0.1/numa0:2");
  rank.member = "w1";
  EXPECT_EQ(rank.place_name(), "w1/numa0:2");
  EXPECT_EQ(rank.machine_name(), "w1");
}

} // namespace
} // namespace reckon
