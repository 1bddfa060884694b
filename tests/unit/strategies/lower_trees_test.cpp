// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

#include "schedule/checker.hpp"
#include "strategies/lower.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

/// `workers` ranks with a gradient of parts of 4 KiB (the last is shorter), then `helpers` without.
Plan plan_of(unsigned workers, unsigned helpers, std::vector<SumTree> trees, unsigned parts,
             unsigned lanes, std::uint64_t window) {
  Plan plan;
  plan.strategy = "mix";
  for (unsigned r = 0; r < workers + helpers; ++r) {
    PlanRank rank{
        .machine = "m0", .worker = r < workers, .server = true, .lanes = static_cast<int>(lanes)};
    plan.ranks.push_back(rank);
  }
  plan.trees = std::move(trees);
  plan.part_bytes = 4096;
  plan.window_parts = window;
  for (unsigned p = 0; p < parts; ++p) {
    const std::uint64_t bytes = p + 1 < parts ? 4096 : 1000;
    plan.parts.offset_bytes.push_back(plan.gradient_bytes);
    plan.parts.bytes.push_back(bytes);
    plan.parts.lane.push_back(p * 7 % lanes);
    plan.parts.tree.push_back(p * 5 % plan.trees.size());
    const SumTree& tree = plan.trees[plan.parts.tree.back()];
    std::uint64_t root = 0;
    while (tree.up[root] != static_cast<std::int64_t>(root)) {
      ++root;
    }
    plan.parts.server.push_back(root);
    plan.gradient_bytes += bytes;
  }
  plan.runs = {{0, plan.gradient_bytes, DType::fp32}};
  return plan;
}

/// Parents of `members` that all lead to `root`, drawn at random; -1 for the others.
std::vector<std::int64_t> random_tree(test::Random& random, std::vector<std::int64_t> members,
                                      std::int64_t root, std::size_t ranks) {
  std::vector<std::int64_t> parent(ranks, -1);
  parent[static_cast<std::size_t>(root)] = root;
  std::vector<std::int64_t> in{root};
  std::shuffle(members.begin(), members.end(), random);
  for (const std::int64_t m : members) {
    if (m != root) {
      parent[static_cast<std::size_t>(m)] = in[random() % in.size()];
      in.push_back(m);
    }
  }
  return parent;
}

/// Takes out those at the ends of a tree that have no gradient and so nothing to send.
void prune(std::vector<std::int64_t>& up, unsigned workers, std::int64_t root = -1) {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t r = workers; r < up.size(); ++r) {
      const bool child = std::any_of(up.begin(), up.end(), [&](std::int64_t parent) {
        return parent == static_cast<std::int64_t>(r);
      });
      if (up[r] >= 0 && !child && static_cast<std::int64_t>(r) != root) {
        up[r] = -1;
        again = true;
      }
    }
  }
}

TEST(LowerTrees, EveryMixOfRandomTreesIsProved) {
  std::size_t relays = 0;
  test::for_cases(1, 400, [&](test::Random& random) {
    const auto among = [&](unsigned a, unsigned b) {
      return static_cast<unsigned>(random.whole(a, b));
    };
    const unsigned workers = among(1, 6), helpers = among(0, 3);
    std::vector<SumTree> trees;
    for (unsigned t = among(1, 4); t > 0; --t) {
      SumTree tree{"drawn", {}, {}, 0};
      std::vector<std::int64_t> up, down;
      for (unsigned r = 0; r < workers + helpers; ++r) {
        if (r < workers || random() % 2 == 0) {
          up.push_back(r);
        }
        if (r < workers || random() % 2 == 0) {
          down.push_back(r);
        }
      }
      const std::int64_t root = up[random() % up.size()];
      tree.up = random_tree(random, up, root, workers + helpers);
      for (std::size_t r = workers; r < tree.up.size(); ++r) {
        if (static_cast<std::int64_t>(r) == root &&
            std::count(tree.up.begin(), tree.up.end(), root) == 1) {
          tree.up[0] = root; // a root without a gradient needs something to sum
        }
      }
      prune(tree.up, workers);
      if (tree.up[static_cast<std::size_t>(root)] != root) {
        continue; // its only branch had no worker
      }
      tree.down = random_tree(random, down, root, workers + helpers);
      prune(tree.down, workers, root);
      relays += std::count(tree.up.begin() + workers, tree.up.end(), -1) <
                static_cast<std::ptrdiff_t>(helpers);
      trees.push_back(std::move(tree));
    }
    if (trees.empty()) {
      return;
    }
    const Plan plan = plan_of(workers, helpers, trees, among(1, 30), among(1, 3), among(1, 5));
    const CheckResult result = check(lower(plan));
    ASSERT_THAT(result.faults, IsEmpty());
  });
  EXPECT_GT(relays, 100U);
}

TEST(LowerTrees, CpuAssistedAggregationSendsWhatBytePSSays) {
  // Two switches of l = 2 GPUs (0 1, 2 3) and the memory of a CPU, 4: in the switch (l-1)M/l to the
  // other and M/l from there to the CPU, for each GPU, up and down (4.2.1, steps 1 to 6).
  const SumTree even{"cpu_assisted", {4, 0, 4, 2, 4}, {4, 0, 4, 2, 4}, 0.5};
  const SumTree odd{"cpu_assisted", {1, 4, 3, 4, 4}, {1, 4, 3, 4, 4}, 0.5};
  Plan plan = plan_of(4, 1, {even, odd}, 16, 1, 4);
  plan.parts.bytes.back() = 4096;
  plan.gradient_bytes = 16 * 4096;
  plan.runs = {{0, plan.gradient_bytes, DType::fp32}};
  for (std::size_t p = 0; p < 16; ++p) {
    plan.parts.tree[p] = p % 2;
  }
  const Schedule schedule = lower(plan);
  ASSERT_THAT(check(schedule).faults, IsEmpty());
  const std::uint64_t m = plan.gradient_bytes;
  const Traffic traffic = traffic_of(schedule);
  for (std::size_t gpu = 0; gpu < 4; ++gpu) {
    EXPECT_EQ(traffic.egress_bytes[gpu], (m / 2 + m / 2) + m / 2); // both ways in the switch, up
    EXPECT_EQ(traffic.ingress_bytes[gpu], (m / 2 + m / 2) + m / 2);
  }
  EXPECT_EQ(traffic.ingress_bytes[4], 2 * m); // M from each switch
  EXPECT_EQ(traffic.egress_bytes[4], 2 * m);
}

TEST(LowerTrees, ATreesPartOfTheWindowIsByHowLongItsPartsLive) {
  // A star and a chain of three workers, half of the parts each, and a window of 8 parts of a page.
  // At rank 0 end both, so it has the star's slots twice and the chain's once; rank 1 is between.
  SumTree star{"star", {0, 0, 0}, {0, 0, 0}, 0.5}, chain{"chain", {0, 0, 1}, {0, 0, 1}, 0.5};
  const auto inbox_slots = [&] {
    const Schedule schedule = lower(plan_of(3, 0, {star, chain}, 40, 1, 8));
    std::vector<std::uint64_t> out; // buffer 1 has what children send
    for (const RankProgram& rank : schedule.ranks) {
      out.push_back(rank.buffer_bytes[1] / 4096);
    }
    return out;
  };
  EXPECT_THAT(inbox_slots(), ElementsAre(2 * 8, 8, 0)); // not known: one for both
  star.life_seconds = 1;
  chain.life_seconds = 3;
  EXPECT_THAT(inbox_slots(), ElementsAre(2 * 2 + 6, 6, 0)); // a quarter and three
}

TEST(LowerTrees, APartWaitsForWhatItsNeighboursWaitFor) {
  // One tree of two workers, a window of 2: the child sends part p when p - 2 is back, and what the
  // part before it and the fourth before it had waited for.
  const SumTree pair{"pair", {0, 0}, {0, 0}, 1, 1};
  const Schedule schedule = lower(plan_of(2, 0, {pair}, 10, 1, 2));
  const LaneProgram& child = schedule.ranks[1].lanes[0];
  std::vector<std::vector<std::uint32_t>> waited(10);
  for (std::uint32_t i = 0; i < child.ops().size(); ++i) {
    if (child.ops()[i].kind == OpKind::write) {
      for (const std::uint32_t d : child.dependencies(i)) {
        EXPECT_EQ(child.ops()[d].kind, OpKind::await);
        waited[child.ops()[i].part].push_back(child.ops()[d].part);
      }
    }
  }
  EXPECT_THAT(waited[1], IsEmpty());
  EXPECT_THAT(waited[2], UnorderedElementsAre(0));
  EXPECT_THAT(waited[5], UnorderedElementsAre(3, 2));
  EXPECT_THAT(waited[9], UnorderedElementsAre(7, 6, 3));
}

TEST(LowerTrees, ATreeThatIsNoneIsRefused) {
  struct Bad {
    const char* words;
    std::vector<std::int64_t> up, down;
  };
  for (const Bad& bad : {Bad{"leaves out worker 1", {0, -1, -1, -1}, {0, 0, -1, -1}},
                         {"leaves out worker 1", {0, 0, -1, -1}, {0, -1, -1, -1}},
                         {"no way from rank 1", {0, 2, 3, 2}, {0, 0, -1, -1}},
                         {"two roots", {0, 1, -1, -1}, {0, 0, -1, -1}},
                         {"gives back from rank 1", {0, 0, -1, -1}, {1, 1, -1, -1}},
                         {"rank 2 at its end", {0, 0, 0, -1}, {0, 0, -1, -1}},
                         {"rank 3 at its end", {0, 0, -1, -1}, {0, 0, -1, 1}}}) {
    EXPECT_REFUSED(input, bad.words, lower(plan_of(2, 2, {{"x", bad.up, bad.down, 1}}, 4, 1, 1)));
  }
}

} // namespace
} // namespace reckon
