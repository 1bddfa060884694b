// SPDX-License-Identifier: Apache-2.0
#include "strategies/predict.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// Four layers: backward 1 s each, forward 0.5 s each, 6 s together.
Passes passes() {
  return {.end_bytes = {1, 2, 3, 4},
          .backward_seconds = {1, 1, 1, 1},
          .forward_seconds = {0.5, 0.5, 0.5, 0.5}};
}

Prediction of(double traffic) {
  return {.bound_seconds = traffic,
          .lo_seconds = traffic,
          .mid_seconds = traffic,
          .hi_seconds = traffic};
}

double iteration(double traffic, const std::optional<double>& credit_seconds) {
  Prediction p = of(traffic);
  add_passes(p, passes(), {}, std::nullopt, credit_seconds);
  return p.mid_seconds;
}

TEST(PassesFormula, InGradientOrderTheForwardPassWaitsForAllTraffic) {
  EXPECT_DOUBLE_EQ(iteration(2, std::nullopt), 4 + 2.0 / 4 + 2); // hidden but for the last layer's
  EXPECT_DOUBLE_EQ(iteration(8, std::nullopt), 1 + 8 + 2);
}

TEST(PassesFormula, ByPriorityTheForwardPassWaitsForWhatIsUnderWay) {
  // The credit of 0.5 s and the first layer's quarter: 4 + 0.5 + 8/4 + 2, less than the traffic
  // from the first gradient on and the last layer's forward pass, 1 + 8 + 0.5.
  EXPECT_DOUBLE_EQ(iteration(8, 0.5), 9.5);
  // 16 s of traffic leave 13, of which 3 s and a layer's 4 are under way: less than 1 + 16 + 0.5.
  EXPECT_DOUBLE_EQ(iteration(16, 3), 17.5);
  EXPECT_DOUBLE_EQ(iteration(16, 8), 4 + 8 + 4 + 2);
  EXPECT_DOUBLE_EQ(iteration(4, 0.5), 4 + 1 + 2); // of 4 s no more than 1 is left to wait for
}

TEST(PassesFormula, ALargeLastGradientIsExposedHoweverLongTheBackwardPassIs) {
  // Nine tenths of the bytes are ready when the backward pass of 100 s is over: of 10 s of traffic
  // nine are left, and the bound says so, too.
  const Passes late{
      .end_bytes = {50, 100, 1000}, .backward_seconds = {50, 49, 1}, .forward_seconds = {1, 1, 1}};
  Prediction p = of(10);
  p.bound_by = "the port";
  add_passes(p, late, {}, std::nullopt);
  EXPECT_DOUBLE_EQ(p.mid_seconds, 100 + 9 + 3);
  EXPECT_DOUBLE_EQ(p.bound_seconds, 100 + 9 + 3);
  EXPECT_EQ(p.bound_by,
            "the port, for the last 90.0 % of the gradient, which is ready after 100 s, "
            "before the forward pass");
  // By priority the forward pass may go on beside the traffic.
  Prediction r = of(10);
  add_passes(r, late, {}, std::nullopt, 1);
  EXPECT_DOUBLE_EQ(r.bound_seconds, 100 + 9);
  // In the middle: 10 s from 50 s on are over before the end, 90 s are not.
  Prediction q = of(90);
  const Passes middle{
      .end_bytes = {10, 990, 1000}, .backward_seconds = {1, 49, 50}, .forward_seconds = {1, 1, 1}};
  add_passes(q, middle, {}, std::nullopt);
  EXPECT_DOUBLE_EQ(q.mid_seconds, 50 + 90 * 0.99 + 3);
}

TEST(PassesFormula, APartWaitsForTheLayerOfItsLastByte) {
  // 8 s of traffic, 2 s for each quarter. Parts of three quarters and one: the first waits for the
  // third layer's backward pass, 3 s, and 8 s follow; the bound has no parts and begins at 1 s.
  Parts parts;
  parts.offset_bytes = {0, 3};
  parts.bytes = {3, 1};
  Prediction p = of(8);
  add_passes(p, passes(), parts, std::nullopt);
  EXPECT_DOUBLE_EQ(p.mid_seconds, 3 + 8 + 2);
  EXPECT_DOUBLE_EQ(p.bound_seconds, 1 + 8 + 2);
  // A short exchange: only the part that ends with the last layer is left, half of it here.
  parts.offset_bytes = {0, 2};
  parts.bytes = {2, 2};
  Prediction q = of(1);
  add_passes(q, passes(), parts, std::nullopt);
  EXPECT_DOUBLE_EQ(q.mid_seconds, 4 + 0.5 + 2);
  // Parts of one layer each are as the layers.
  parts.offset_bytes = {0, 1, 2, 3};
  parts.bytes = {1, 1, 1, 1};
  Prediction r = of(2);
  add_passes(r, passes(), parts, std::nullopt);
  EXPECT_DOUBLE_EQ(r.mid_seconds, iteration(2, std::nullopt));
}

TEST(PassesFormula, WithAllUnderWayPriorityIsGradientOrder) {
  for (const double traffic : {0.5, 4.0, 8.0, 30.0}) {
    EXPECT_DOUBLE_EQ(iteration(traffic, 100), iteration(traffic, std::nullopt));
  }
}

TEST(PassesFormula, ByPriorityLessIsExposedWithALesserCredit) {
  for (double traffic = 0.25; traffic < 20; traffic += 0.25) {
    double before = 0;
    for (const double credit : {0.0, 0.1, 1.0, 5.0}) {
      const double seconds = iteration(traffic, credit);
      EXPECT_GE(seconds, before);
      EXPECT_GE(seconds, std::max(6.0, traffic));
      before = seconds;
    }
    EXPECT_LE(iteration(traffic, 0.0), iteration(traffic, std::nullopt)) << traffic;
  }
}

TEST(PassesFormula, PassesThatTakeLongerHideMore) {
  const auto left = [](double traffic, std::vector<std::uint64_t> ends, double longer) {
    Plan plan;
    plan.passes = passes();
    plan.passes->end_bytes = std::move(ends);
    plan.prediction = of(traffic);
    add_passes(plan.prediction, *plan.passes, {}, std::nullopt);
    return exposed_seconds(plan, longer);
  };
  // The network is busy from 1 s to 9 s, and the pass ends at 4 s, or at 1 + 2 * 3 = 7 s.
  EXPECT_NEAR(left(8, {1, 2, 3, 4}, 1), 5, 1e-9);
  EXPECT_NEAR(left(8, {1, 2, 3, 4}, 2), 2, 1e-9);
  EXPECT_NEAR(left(8, {1, 2, 3, 4}, 0.5), 1 + 8 - 2.5, 1e-9);
  // The last layer's quarter is left in any case.
  EXPECT_NEAR(left(8, {1, 2, 3, 4}, 5), 2, 1e-9);
  // Layers of 1, 1, 2 and 4 eighths: ready at 1, 2.5, 4 and 5.5 s, with 8, 7, 6 and 4 s to go.
  EXPECT_NEAR(left(8, {1, 2, 4, 8}, 1), 5, 1e-9);
  EXPECT_NEAR(left(8, {1, 2, 4, 8}, 1.5), 4 + 6 - 5.5, 1e-9);
  // What contention adds to passes is no traffic: nothing was exposed, and nothing will be.
  EXPECT_NEAR(left(0, {1, 2, 3, 4}, 2), 0, 1e-9);
}

} // namespace
} // namespace reckon
