// SPDX-License-Identifier: Apache-2.0
#include "equations/aggregation.hpp"

#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace reckon {
namespace {

using test::Random;

constexpr std::uint64_t k_seed = 421;
constexpr int k_cases = 400;
constexpr double k_rounding = 1e-12;

SwitchTree random_tree(Random& random) {
  SwitchTree tree;
  tree.gpus_per_switch = 1 + random() % 16;
  tree.switches = 1 + random() % 8;
  tree.model_bytes = std::exp2(random.uniform(0, 40));
  tree.gpu_bytes_per_s = std::exp2(random.uniform(25, 37));
  tree.switch_bytes_per_s = tree.gpu_bytes_per_s * std::exp2(random.uniform(-5, 5));
  return tree;
}

template <class Check>
void for_trees(Check check) {
  test::for_cases(k_seed, k_cases, [&](Random& random) {
    const SwitchTree tree = random_tree(random);
    SCOPED_TRACE(testing::Message() << "n " << tree.gpus_per_switch << ", p " << tree.switches
                                    << ", M " << tree.model_bytes << ", b_N "
                                    << tree.gpu_bytes_per_s << ", b_S " << tree.switch_bytes_per_s);
    check(tree);
  });
}

/// The traffic of BytePS' steps counted copy by copy, without equations 8 and 9: bytes on one GPU's
/// link and on one switch's, towards the processor (the way back is its mirror image).
double counted_s(const SwitchTree& tree, double x) {
  const std::size_t n = tree.gpus_per_switch;
  std::vector<double> out(n, 0.0); // GPU to switch
  std::vector<double> in(n, 0.0);  // switch to GPU
  double up = 0;                   // switch to processor
  for (std::size_t i = 0; i < n; ++i) {
    out[i] += x;
    up += x;
    const double piece = (1 - x) / static_cast<double>(n);
    for (std::size_t j = 0; j < n; ++j) {
      if (j != i) { // reduce-scatter: i's part of j's gradient goes to i
        out[j] += piece;
        in[i] += piece;
      }
    }
    out[i] += piece;
    up += piece;
  }
  // All-gather sends what reduce-scatter received: a link's direction carries both.
  double gpu = 0;
  for (std::size_t i = 0; i < n; ++i) {
    gpu = std::max(gpu, out[i] + in[i]);
  }
  return tree.model_bytes * std::max(gpu / tree.gpu_bytes_per_s, up / tree.switch_bytes_per_s);
}

TEST(AggregationProperty, TheTimeIsThatOfTheCopies) {
  for_trees([](const SwitchTree& tree) {
    for (const double x : {0.0, 0.1, 0.5, 0.9, 1.0}) {
      const double time_s = aggregation_s(tree, x);
      EXPECT_NEAR(time_s, counted_s(tree, x), k_rounding * time_s);
    }
  });
}

TEST(AggregationProperty, NoFractionBeatsTheSolvedOne) {
  for_trees([](const SwitchTree& tree) {
    const AggregationMix mix = solve_aggregation(tree);
    EXPECT_NEAR(mix.time_s, aggregation_s(tree, mix.brute_force_fraction), k_rounding * mix.time_s);
    constexpr int k_steps = 2000;
    double best = mix.time_s * 2;
    for (int i = 0; i <= k_steps; ++i) {
      best = std::min(best, aggregation_s(tree, static_cast<double>(i) / k_steps));
    }
    EXPECT_GE(best, mix.time_s * (1 - k_rounding));
    // Within half a step of the best x the time rises by at most n M / b_S / steps.
    const double n = static_cast<double>(tree.gpus_per_switch);
    const double slope =
        tree.model_bytes * (n / tree.switch_bytes_per_s + 1 / tree.gpu_bytes_per_s);
    EXPECT_LE(best, mix.time_s + slope / k_steps);
  });
}

TEST(AggregationProperty, CpuAssistedIsTheMixWithoutBruteForce) {
  for_trees([](const SwitchTree& tree) {
    EXPECT_NEAR(cpu_assisted_s(tree), aggregation_s(tree, 0), k_rounding * cpu_assisted_s(tree));
  });
}

TEST(AggregationProperty, CpuAssistedBeatsEveryRingAtEqualLinks) {
  // BytePS 4.2.1: k = 1, bottleneck <= b_S, n and p at least 2. At a bottleneck of b_S itself:
  // (2n-1)/n <= 2(np-1)/(np), with equality for p = 2 only.
  for_trees([](SwitchTree tree) {
    tree.gpus_per_switch = std::max<std::uint64_t>(2, tree.gpus_per_switch);
    tree.switches = std::max<std::uint64_t>(2, tree.switches);
    tree.switch_bytes_per_s = tree.gpu_bytes_per_s;
    EXPECT_LE(cpu_assisted_s(tree),
              ring_aggregation_s(tree, tree.gpu_bytes_per_s) * (1 + k_rounding));
    EXPECT_LT(cpu_assisted_s(tree), ring_aggregation_s(tree, 0.99 * tree.gpu_bytes_per_s));
  });
}

} // namespace
} // namespace reckon
