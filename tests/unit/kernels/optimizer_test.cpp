// SPDX-License-Identifier: Apache-2.0
#include "kernels/optimizer.hpp"

#include "each_target.hpp"
#include "stats/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace reckon {
namespace {

using test::for_each_target;
using Floats = std::vector<float>;

Floats random_floats(std::size_t n, std::mt19937_64& engine) {
  Floats x(n);
  for (float& v : x) {
    v = static_cast<float>(4 * uniform_unit(engine) - 2);
  }
  return x;
}

void expect_same_bits(const Floats& got, const Floats& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(std::memcmp(&got[i], &expected[i], sizeof(float)), 0)
        << i << ": " << got[i] << " and " << expected[i];
  }
}

TEST(Optimizers, FirstStepsWorkedOutByHand) {
  // p = 1, g = 0.5, powers of two where possible so that the numbers are exact.
  for_each_target([] {
    const Floats g(3, 0.5F);
    Floats p(3, 1.0F), none;
    optimizer_step(Optimizer::sgd, p, none, none, g, 1, {.learning_rate = 0.25F});
    EXPECT_EQ(p, Floats(3, 0.875F)); // 1 - 0.25 * 0.5

    p.assign(3, 1.0F);
    Floats b(3, 0.0F);
    const StepNumbers half{.learning_rate = 0.25F, .momentum = 0.5F};
    optimizer_step(Optimizer::momentum, p, b, none, g, 1, half);
    EXPECT_EQ(b, Floats(3, 0.5F));
    EXPECT_EQ(p, Floats(3, 0.875F));
    optimizer_step(Optimizer::momentum, p, b, none, g, 2, half);
    EXPECT_EQ(b, Floats(3, 0.75F));   // 0.5 * 0.5 + 0.5
    EXPECT_EQ(p, Floats(3, 0.6875F)); // 0.875 - 0.25 * 0.75

    p.assign(3, 1.0F);
    Floats v(3, 0.0F);
    optimizer_step(Optimizer::rmsprop, p, v, none, g, 1,
                   {.learning_rate = 0.25F, .decay = 0.75F, .epsilon = 0.0F});
    EXPECT_EQ(v, Floats(3, 0.0625F)); // 0.25 * 0.25, root 0.25
    EXPECT_EQ(p, Floats(3, 0.5F));    // 1 - 0.25 * 0.5 / 0.25
    optimizer_step(Optimizer::rmsprop, p, v, none, g, 2,
                   {.learning_rate = 0.25F, .decay = 1.0F, .epsilon = 0.25F});
    EXPECT_EQ(p, Floats(3, 0.25F)); // root 0.25 + epsilon 0.25: 0.5 - 0.25 * 0.5 / 0.5
  });
}

TEST(Optimizers, AdamsFirstStepHasTheLengthOfTheRateWhateverTheGradient) {
  // t = 1: m / (1 - beta1) = g and sqrt(v / (1 - beta2)) = |g|, so that the step is lr sign(g).
  for_each_target([] {
    const Floats g{1e-3F, -1.0F, 250.0F, -7.5F, 0.1F};
    Floats p(5, 0.0F);
    Floats m(5, 0.0F);
    Floats v(5, 0.0F);
    optimizer_step(Optimizer::adam, p, m, v, g, 1, {.learning_rate = 0.5F, .epsilon = 0.0F});
    for (std::size_t i = 0; i < g.size(); ++i) {
      // A handful of roundings of 2^-24 each, and those of 1 - beta in fp32 (1e-4 relative for 1 -
      // 0.999).
      EXPECT_NEAR(p[i], g[i] > 0 ? -0.5 : 0.5, 1e-4);
      EXPECT_NEAR(m[i], 0.1 * static_cast<double>(g[i]),
                  1e-6 * std::abs(static_cast<double>(g[i])));
    }
  });
}

TEST(Optimizers, AdamFollowsTheFormulaInDoublePrecisionForManySteps) {
  for_each_target([] {
    constexpr std::uint64_t seed = 7201;
    SCOPED_TRACE(seed);
    std::mt19937_64 engine(seed);
    const std::size_t n = 33;
    Floats p = random_floats(n, engine);
    Floats m(n, 0.0F);
    Floats v(n, 0.0F);
    std::vector<double> dp(p.begin(), p.end());
    std::vector<double> dm(n, 0.0);
    std::vector<double> dv(n, 0.0);
    for (std::uint64_t t = 1; t <= 100; ++t) {
      const Floats g = random_floats(n, engine);
      optimizer_step(Optimizer::adam, p, m, v, g, t, {.learning_rate = 0.01F});
      for (std::size_t i = 0; i < n; ++i) {
        const double gi = static_cast<double>(g[i]);
        dm[i] = 0.9 * dm[i] + 0.1 * gi;
        dv[i] = 0.999 * dv[i] + 0.001 * gi * gi;
        const double mean = dm[i] / (1 - std::pow(0.9, static_cast<double>(t)));
        const double square = dv[i] / (1 - std::pow(0.999, static_cast<double>(t)));
        dp[i] -= 0.01 * mean / (std::sqrt(square) + 1e-8);
      }
    }
    for (std::size_t i = 0; i < n; ++i) {
      // 100 steps of at most 0.01, each wrong by at most about 2e-5 relative (1 - beta2 in fp32).
      EXPECT_NEAR(static_cast<double>(p[i]), dp[i], 3e-5);
    }
  });
}

/// The third step of one element by the scalar formula, with the learning rate 0.03.
void scalar_step(Optimizer optimizer, float& p, float& s1, float& s2, float g) {
  switch (optimizer) {
  case Optimizer::sgd:
    p = p - 0.03F * g;
    break;
  case Optimizer::momentum:
    s1 = 0.9F * s1 + g;
    p = p - 0.03F * s1;
    break;
  case Optimizer::rmsprop:
    s1 = 0.99F * s1 + (1 - 0.99F) * (g * g);
    p = p - 0.03F * (g / (std::sqrt(s1) + 1e-8F));
    break;
  case Optimizer::adam: {
    const double c1 = 1 - std::pow(static_cast<double>(0.9F), 3.0);
    const double c2 = 1 - std::pow(static_cast<double>(0.999F), 3.0);
    const auto rate = static_cast<float>(static_cast<double>(0.03F) / c1);
    const auto root = static_cast<float>(1 / std::sqrt(c2));
    s1 = 0.9F * s1 + (1 - 0.9F) * g;
    s2 = 0.999F * s2 + (1 - 0.999F) * (g * g);
    p = p - rate * (s1 / (std::sqrt(s2) * root + 1e-8F));
    break;
  }
  }
}

TEST(Optimizers, EveryTargetAndEverySizeGivesTheBitsOfTheScalarFormula) {
  for_each_target([] {
    constexpr std::uint64_t seed = 7202;
    SCOPED_TRACE(seed);
    std::mt19937_64 engine(seed);
    for (std::size_t n = 0; n <= 130; ++n) {
      for (const Optimizer optimizer :
           {Optimizer::sgd, Optimizer::momentum, Optimizer::rmsprop, Optimizer::adam}) {
        const std::size_t pad = uniform_index(engine, 16); // another alignment every time
        const auto body = [pad](Floats& x) { return std::span(x).subspan(pad); };
        Floats g = random_floats(n + pad, engine);
        Floats p = random_floats(n + pad, engine);
        Floats s1 = random_floats(n + pad, engine);
        Floats s2 = random_floats(n + pad, engine);
        for (std::size_t i = 0; i < s1.size(); ++i) { // sums of squares
          s1[i] = optimizer == Optimizer::rmsprop ? std::abs(s1[i]) : s1[i];
          s2[i] = std::abs(s2[i]);
        }
        Floats want = p, want1 = s1, want2 = s2;
        for (std::size_t i = pad; i < want.size(); ++i) {
          scalar_step(optimizer, want[i], want1[i], want2[i], g[i]);
        }
        optimizer_step(optimizer, body(p), body(s1), body(s2), body(g), 3,
                       {.learning_rate = 0.03F});
        expect_same_bits(p, want);
        expect_same_bits(s1, want1); // an array that the optimizer has no use for stays, too
        expect_same_bits(s2, want2);
        if (testing::Test::HasFatalFailure()) {
          return;
        }
      }
    }
  });
}

TEST(Optimizers, SayHowManyBytesTheyMove) {
  // g read; p and each state read and written: 4 * (1 + 2), 4 * (1 + 2 + 2), 4 * (1 + 2 + 4).
  EXPECT_EQ(bytes_moved_per_element(Optimizer::sgd), 12U);
  EXPECT_EQ(bytes_moved_per_element(Optimizer::momentum), 20U);
  EXPECT_EQ(bytes_moved_per_element(Optimizer::rmsprop), 20U);
  EXPECT_EQ(bytes_moved_per_element(Optimizer::adam), 28U);
  EXPECT_EQ(optimizer_named("rmsprop"), Optimizer::rmsprop);
  EXPECT_EQ(optimizer_named("lamb"), std::nullopt);
}

} // namespace
} // namespace reckon
