// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter, all-gather, broadcast and reduce: halves of forests.
#include "fixtures.hpp"

#include "core/json.hpp"
#include "documents/json.hpp"
#include "schedule/checker.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/forest/planner.hpp"
#include "strategies/lower.hpp"
#include "support/inside_profiles.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

constexpr double k_port = 10e9; ///< bytes per second, each direction

/// `rates`: of each GPU's port to the switch and from it.
Profile gpus_on_a_switch(const std::vector<std::pair<double, double>>& rates) {
  Profile profile;
  profile.name = "switch";
  profile.machines.push_back({.id = "m0", .name = "switch"});
  add_object(profile, ObjectKind::machine, "m0", "");
  add_object(profile, ObjectKind::pci_bridge, "m0/sw", "m0");
  for (std::size_t g = 0; g < rates.size(); ++g) {
    const std::string id = "m0/gpu" + std::to_string(g);
    add_object(profile, ObjectKind::gpu, id, "m0/sw");
    add_link_rate(profile, "link_bandwidth", id, "m0/sw", rates[g].first);
    add_link_rate(profile, "link_bandwidth", "m0/sw", id, rates[g].second);
  }
  return profile;
}

Network network_of(const Profile& profile, Collective collective, std::size_t root = 0) {
  InsideOptions options;
  options.relays = std::vector<std::string>();
  Network network = network_inside_machine(profile, "m0", options);
  network.collective = collective;
  network.root = root;
  return network;
}

struct Expected {
  Collective collective;
  double seconds;
};

TEST(Collective, OnASwitchEveryHalfTakesWhatPassesOnePort) {
  // n GPUs with full-duplex ports B: a worker sends the n-1 n-ths that are others' (reduce-scatter)
  // or receives them (all-gather); a root's M bytes pass its port once.
  for (const std::size_t n : {2U, 3U, 5U, 8U}) {
    const Profile profile =
        gpus_on_a_switch(std::vector<std::pair<double, double>>(n, {k_port, k_port}));
    const double nths = static_cast<double>(n - 1) / static_cast<double>(n) / k_port;
    for (const Expected& e : {Expected{Collective::reduce_scatter, nths},
                              {Collective::all_gather, nths},
                              {Collective::broadcast, 1 / k_port},
                              {Collective::reduce, 1 / k_port}}) {
      SCOPED_TRACE(testing::Message() << n << " GPUs, " << name_of(e.collective));
      const Forest forest = solve_forest(network_of(profile, e.collective, n - 1));
      EXPECT_NEAR(forest.optimum_seconds_per_byte, e.seconds, 1e-7 * e.seconds);
      EXPECT_NEAR(forest.certificate_seconds_per_byte, e.seconds, 1e-7 * e.seconds);
      EXPECT_NEAR(forest.bound_seconds_per_byte, e.seconds, 1e-7 * e.seconds);
    }
  }
}

TEST(Collective, UnequalDirectionsBindWhereTheyAreUsed) {
  // GPU 0 sends at B/4 and receives at B; the others both at B, n = 4.
  const Profile profile = gpus_on_a_switch(
      {{k_port / 4, k_port}, {k_port, k_port}, {k_port, k_port}, {k_port, k_port}});
  const auto time = [&](Collective collective, std::size_t root = 0) {
    const Forest forest = solve_forest(network_of(profile, collective, root));
    const double seconds = forest.optimum_seconds_per_byte;
    // Here no more binds than what one of them must send or receive.
    EXPECT_NEAR(forest.bound_seconds_per_byte, seconds, 1e-7 * seconds) << name_of(collective);
    return seconds * k_port;
  };
  // It sends its 3/4 of a reduce-scatter itself: 3/4 / (1/4). In an all-gather its own 1/4 once,
  // and others pass it on: 1/4 / (1/4), which is more than the 3/4 that each receives. A broadcast
  // from it takes 1 / (1/4), one to it nothing more than its port: M / B.
  EXPECT_NEAR(time(Collective::reduce_scatter), 3, 1e-6);
  EXPECT_NEAR(time(Collective::all_gather), 1, 1e-6);
  EXPECT_NEAR(time(Collective::broadcast), 4, 1e-6);
  EXPECT_NEAR(time(Collective::broadcast, 1), 1, 1e-6); // 0 receives and need not pass on
  EXPECT_NEAR(time(Collective::reduce), 1, 1e-6);
  EXPECT_NEAR(time(Collective::reduce, 1), 4, 1e-6); // its gradient leaves once
}

Plan plan_of(const Profile& profile, const Workload& workload, const InsidePlanOptions& options) {
  return plan_inside({profile, workload, {"p", digest_of("p")}, {"w", digest_of("w")}}, options);
}

constexpr Collective k_halves[] = {Collective::reduce_scatter, Collective::all_gather,
                                   Collective::broadcast, Collective::reduce};

TEST(Collective, EveryWorkersNthIsANeighbourhoodOfWholeElements) {
  // 700,001 fp32 and 99,999 fp16: 3,000,002 bytes by 3: ends at 1,000,000 (2/3 down to an element)
  // and 2,000,001, which is 2,000,000.
  const Workload model = workload({{"a", 700'001, DType::fp32}, {"b", 99'999, DType::fp16}});
  const Profile profile = gpus_on_a_switch({{k_port, k_port}, {k_port, k_port}, {k_port, k_port}});
  InsidePlanOptions options{.plan = {.part_bytes = 64U << 10U}};
  options.collective = Collective::reduce_scatter;
  const Plan plan = plan_of(profile, model, options);
  const Schedule schedule = lower(plan);
  ASSERT_GE(schedule.owned.size(), 4U);
  EXPECT_EQ(schedule.owned[0], (OwnedRun{0, 0, 1'000'000}));
  EXPECT_EQ(schedule.owned[1], (OwnedRun{1, 1'000'000, 1'000'000}));
  EXPECT_EQ(schedule.owned[2], (OwnedRun{2, 2'000'000, 800'004}));
  EXPECT_EQ(schedule.owned[3].rank, 2U);
  EXPECT_EQ(schedule.owned[3].bytes, 199'998U);
  // Each sends the two n-ths that are others', to within one word that a slot is free (no bytes).
  const Traffic traffic = traffic_of(schedule);
  EXPECT_EQ(traffic.egress_bytes[0] + traffic.egress_bytes[1] + traffic.egress_bytes[2],
            2U * 3'000'002U);
}

TEST(Collective, OnRandomMachinesPlansAreProvedAndReadBack) {
  std::size_t relays = 0, small_windows = 0;
  for_cases(11, 200, [&](Random& random) {
    const Profile profile = random_inside_profile(random, 5);
    InsidePlanOptions options{
        .lanes = random.whole(1, 3),
        .plan = {.part_bytes = 128U << 10U, .window_parts = random.whole(1, 6)}};
    options.collective = k_halves[random.below(4)];
    options.root = has_root(options.collective) ? random.below(2) : 0;
    small_windows += *options.plan.window_parts < 3 ? 1U : 0U;
    const Workload model = workload({{"a", 700'001, DType::fp32}, {"b", 99'999, DType::fp16}});
    const Plan plan = plan_of(profile, model, options);
    const CheckResult result = check(lower(plan));
    ASSERT_THAT(result.faults, IsEmpty()) << name_of(plan.collective);
    relays += plan.ranks.back().worker ? 0U : 1U;
    const std::string text = canonical_text(plan);
    EXPECT_EQ(canonical_text(plan_from_json(parse_json(text, "p"), "p")), text);
    EXPECT_GE(plan.prediction.mid_seconds, plan.prediction.bound_seconds * (1 - 1e-9));
  });
  EXPECT_GT(relays, 10U);
  EXPECT_GT(small_windows, 30U);
}

/// Parents of all ranks that lead to `root`, drawn at random; ranks from `workers` on may be left
/// out, and are not at an end.
std::vector<std::int64_t> random_half(Random& random, std::size_t workers, std::size_t ranks,
                                      std::size_t root) {
  std::vector<std::int64_t> parent(ranks, -1);
  parent[root] = static_cast<std::int64_t>(root);
  std::vector<std::size_t> in{root};
  for (std::size_t r = workers; r < ranks; ++r) { // relays first, so that workers can be below
    if (random.coin()) {
      parent[r] = static_cast<std::int64_t>(in[random.below(in.size())]);
      in.push_back(r);
    }
  }
  for (std::size_t r = 0; r < workers; ++r) {
    if (r != root) {
      parent[r] = static_cast<std::int64_t>(in[random.below(in.size())]);
      in.push_back(r);
    }
  }
  for (bool again = true; again;) {
    again = false;
    for (std::size_t r = workers; r < ranks; ++r) {
      if (parent[r] >= 0 &&
          std::count(parent.begin(), parent.end(), static_cast<std::int64_t>(r)) == 0) {
        parent[r] = -1;
        again = true;
      }
    }
  }
  return parent;
}

/// A plan of random trees; every worker is the root of as many equal parts.
Plan random_plan(Random& random) {
  const std::size_t workers = random.whole(2, 5), ranks = workers + random.below(4);
  Plan plan;
  plan.strategy = "mix";
  plan.collective = k_halves[random.below(4)];
  plan.root = has_root(plan.collective) ? random.below(workers) : 0;
  plan.window_parts = random.whole(1, 5);
  plan.part_bytes = 4096;
  const std::uint64_t lanes = random.whole(1, 2), each = random.whole(1, 6);
  for (std::size_t r = 0; r < ranks; ++r) {
    plan.ranks.push_back(
        {.machine = "m0", .worker = r < workers, .server = true, .lanes = static_cast<int>(lanes)});
  }
  for (std::size_t t = 0; t < 2 * workers; ++t) {
    const std::size_t root = has_root(plan.collective) ? plan.root : t % workers;
    std::vector<std::int64_t> alone(ranks, -1);
    alone[root] = static_cast<std::int64_t>(root);
    const std::vector<std::int64_t> half = random_half(random, workers, ranks, root);
    plan.trees.push_back({"drawn", sums(plan.collective) ? half : alone,
                          sums(plan.collective) ? alone : half,
                          0.5 / static_cast<double>(workers)});
  }
  for (std::size_t i = 0; i < each; ++i) {
    for (std::size_t t = 0; t < plan.trees.size(); ++t) {
      plan.parts.offset_bytes.push_back(plan.gradient_bytes);
      plan.parts.bytes.push_back(4096);
      plan.parts.lane.push_back(random.below(lanes));
      plan.parts.tree.push_back(t);
      plan.parts.server.push_back(plan.trees[t].root());
      plan.ranks[plan.trees[t].root()].assigned_bytes += 4096;
      plan.gradient_bytes += 4096;
    }
  }
  plan.runs = {{0, plan.gradient_bytes, DType::fp32}};
  return plan;
}

TEST(LowerHalves, EveryMixOfRandomTreesIsProved) {
  for_cases(5, 400, [&](Random& random) {
    const Plan plan = random_plan(random);
    ASSERT_THAT(check(lower(plan)).faults, IsEmpty()) << name_of(plan.collective);
  });
}

TEST(LowerHalves, TheCheckerFindsWhatIsMissing) {
  Random random(1);
  for (int i = 0; i < 40; ++i) {
    const Plan plan = random_plan(random);
    Schedule schedule = lower(plan);
    schedule.owned.front().rank = (schedule.owned.front().rank + 1) % 2; // somebody else's
    EXPECT_FALSE(check(schedule).ok()) << name_of(plan.collective);
    schedule = lower(plan);
    schedule.owned.erase(schedule.owned.begin());
    EXPECT_THAT(check(schedule).faults, Contains(test::Says("several")));
  }
}

TEST(LowerHalves, APlanThatIsNotOfItsCollectiveIsRefused) {
  Random random(3);
  Plan plan = random_plan(random);
  while (plan.collective != Collective::all_gather) {
    plan = random_plan(random);
  }
  plan.fixed_point = FixedPointPlan{};
  EXPECT_REFUSED(input, "all-reduce", lower(plan));
  plan.fixed_point.reset();
  plan.collective = Collective::broadcast;
  EXPECT_REFUSED(input, "parts", lower(plan));
  plan.collective = Collective::all_gather;
  plan.ranks[0].assigned_bytes += 4096;
  EXPECT_REFUSED(input, "the root", lower(plan));
}

} // namespace
} // namespace reckon
