// SPDX-License-Identifier: Apache-2.0
// Trees over racks, equation 17.
#include "fixtures.hpp"

#include "schedule/checker.hpp"
#include "strategies/lower.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

using namespace test;

TEST(TreesOverRacks, ARackThatOnlyServesSumsForTheOthers) {
  // Three racks with two workers and an uplink of 250 MB/s each, and a server of 1 GB/s in a rack
  // of its own. Sums of all in the racks of workers, 2 (3 - 1) / 3 M each way, would take 4/3 as
  // long as M up and M down: with all at the server its port takes 3 M / 1 GB/s, less than M / 250
  // MB/s.
  Profile p = empty_profile("racks");
  Roles roles;
  roles.name = "three racks and a server";
  for (const std::string rack : {"r0", "r1", "r2", "r3"}) {
    const bool works = rack != "r3";
    p.machines.push_back({"of-" + rack, rack, works ? 2U : 1U, 8, 0, rack});
    add_port(p, "of-" + rack, 1e9);
    roles.groups.push_back({"of-" + rack, works ? 2U : 1U, works, true, 1});
    if (works) {
      add_rate(p, {.test = "uplink_bandwidth", .from = rack}, 0.25e9);
    }
  }
  const Workload model = one_tensor(16U << 20U);
  const Plan plan = make_plan(inputs_of(p, model, roles), {.strategy = k_rack_hierarchical});
  const double m = static_cast<double>(model.bytes());
  EXPECT_NEAR(quantity_of(plan, "rack_uplink_bytes")->value, m, 1e-6 * m);
  EXPECT_NEAR(plan.prediction.bound_seconds, m / 0.25e9, 1e-9);
  EXPECT_LT(plan.prediction.mid_seconds, 1.1 * m / 0.25e9);
  for (const SumTree& tree : plan.trees) {
    EXPECT_EQ(tree.root(), 6U);
  }
  EXPECT_NEAR(static_cast<double>(plan.ranks[6].ingress_bytes), 3 * m, 0.001 * m);
  EXPECT_TRUE(check(lower(plan)).ok());
}

} // namespace
} // namespace reckon
