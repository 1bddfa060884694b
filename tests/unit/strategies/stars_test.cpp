// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"
#include "proved.hpp"

#include "strategies/lower.hpp"
#include "strategies/shares/stars.hpp"
#include "strategies/strategy.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

#include <numeric>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

std::vector<std::size_t> ranks(std::size_t first, std::size_t count) {
  std::vector<std::size_t> out(count);
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// What each rank sends, receives and adds, from who is above whom.
Load load_by_trees(const Stars& stars, std::size_t workers, const std::vector<double>& loads) {
  Load load;
  load.egress_bytes.assign(loads.size(), 0);
  load.ingress_bytes = load.summed_bytes = load.egress_bytes;
  for (std::size_t root = 0; root < loads.size(); ++root) {
    for (std::size_t rank = 0; loads[root] > 0 && rank < loads.size(); ++rank) {
      const auto above = stars.parent(root, rank);
      const std::size_t operands = stars.children(root, rank).size() + (rank < workers ? 1 : 0);
      load.summed_bytes[rank] += operands > 1 ? static_cast<double>(operands - 1) * loads[root] : 0;
      if (above && *above != rank) { // its sum up, and all of it down
        for (const std::size_t end : {rank, *above}) {
          load.egress_bytes[end] += loads[root];
          load.ingress_bytes[end] += loads[root];
        }
      }
    }
  }
  return load;
}

TEST(Stars, SixWorkersInTwoGroupsAndTwoServersByHand) {
  // Workers 0 1 2 | 3 4 5, servers 6 7. Of worker 4's parts the heads are 4 itself and 1.
  const Stars stars(ranks(0, 6), ranks(6, 2), 2);
  const auto parents = [&](std::size_t root) {
    std::vector<int> out;
    for (std::size_t rank = 0; rank < 8; ++rank) {
      const auto above = stars.parent(root, rank);
      out.push_back(above ? static_cast<int>(*above) : -1);
    }
    return out;
  };
  EXPECT_THAT(parents(4), ElementsAre(1, 4, 1, 4, 4, 4, -1, -1));
  // Two servers have one head for each other's parts: one group, all workers.
  EXPECT_EQ(stars.served_groups(), 1U);
  EXPECT_THAT(parents(7), ElementsAre(6, 6, 6, 6, 6, 6, 7, 7));
  EXPECT_THAT(stars.children(4, 4), ElementsAre(1, 3, 5));
  EXPECT_THAT(stars.children(4, 1), ElementsAre(0, 2));
  EXPECT_THAT(stars.children(4, 0), IsEmpty());
}

TEST(Stars, EveryTreeHasEveryWorkerInTwoLevelsAndItsBytesAreThoseOfTheLoad) {
  std::cout << "seed 8\n";
  test::for_cases(8, 2000, [](test::Random& random) {
    const std::size_t n = random.whole(1, 30), k = random.below(12);
    const std::size_t groups = random.below(n + 1);
    const Stars stars(ranks(0, n), ranks(n, k), groups);
    SCOPED_TRACE(fmt::format("n={} k={} groups={}", n, k, groups));
    std::vector<double> loads(n + k);
    for (double& bytes : loads) {
      bytes = random.coin() ? random.uniform(0, 100) : 0;
    }
    for (std::size_t root = 0; root < n + k; ++root) {
      std::vector<std::vector<std::size_t>> children(n + k);
      for (std::size_t rank = 0; rank < n + k; ++rank) {
        const auto above = stars.parent(root, rank);
        ASSERT_TRUE(above || rank >= n) << "worker " << rank;
        if (above && *above != rank) {
          children[*above].push_back(rank);
          ASSERT_EQ(stars.parent(root, *above), root) << "more than two levels";
        }
        ASSERT_EQ(above == rank, rank == root);
      }
      for (std::size_t rank = 0; rank < n + k; ++rank) {
        ASSERT_EQ(stars.children(root, rank), children[rank]) << root << ' ' << rank;
        if (rank >= n && rank != root && stars.parent(root, rank)) {
          ASSERT_THAT(children[rank], Not(IsEmpty())); // who only serves heads somebody
        }
      }
    }
    const Load load = stars.load_of(loads), expected = load_by_trees(stars, n, loads);
    EXPECT_THAT(load.egress_bytes, Pointwise(DoubleNear(1e-9), expected.egress_bytes));
    EXPECT_THAT(load.ingress_bytes, Pointwise(DoubleNear(1e-9), expected.ingress_bytes));
    EXPECT_THAT(load.summed_bytes, Pointwise(DoubleNear(1e-9), expected.summed_bytes));
  });
}

TEST(Stars, SumsInTwoLevelsAreProvedForEveryShape) {
  std::size_t proved = 0;
  for (const std::uint64_t n : {2U, 4U, 7U, 10U, 17U}) {
    for (const std::uint64_t k : {0U, 1U, 3U, 9U}) {
      for (const std::uint64_t window : {1U, 3U, 64U}) {
        SCOPED_TRACE(fmt::format("n={} k={} window {}", n, k, window));
        const Plan plan = plan_for(
            cluster(1e9, 5e8), one_tensor(50'000), n, k,
            {.strategy = k_two_level_split, .part_bytes = 1024, .window_parts = window}, 2);
        expect_proved(plan);
        ++proved;
      }
    }
  }
  EXPECT_EQ(proved, 60U);
}

TEST(Stars, APlanWithGroupsHasNothingThatGroupsHaveNot) {
  Plan plan = plan_for(cluster(1e9, 1e9), one_tensor(50'000), 4, 0,
                       {.strategy = k_two_level_split, .part_bytes = 1024});
  EXPECT_EQ(plan.groups, 2U);
  plan.sums_in_place = true;
  EXPECT_ERROR(lower(plan));
  plan.sums_in_place = false;
  plan.strategy = "ring";
  EXPECT_ERROR(lower(plan));
}

TEST(Stars, ManyWorkersWithoutServersReachTheBoundInTwoLevels) {
  // 100 workers, 4,000 parts: in one level a sum waits for 100 of them.
  const auto seconds = [](const char* strategy) {
    const Plan plan = plan_for(cluster(1e9, 1e9), one_tensor(16'384'000), 100, 0,
                               {.strategy = strategy, .part_bytes = 65536});
    return plan.prediction.mid_seconds / plan.prediction.bound_seconds;
  };
  EXPECT_LT(seconds(k_two_level_split), 1.03);
  EXPECT_GT(seconds("byteps_split"), 1.05);
}

} // namespace
} // namespace reckon
