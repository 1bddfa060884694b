// SPDX-License-Identifier: Apache-2.0
#include "strategies/contention.hpp"

#include "core/error.hpp"
#include "fixtures.hpp"
#include "strategies/model.hpp"
#include "strategies/predict.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

Cell cell(const std::string& test, int threads, std::uint64_t bytes, const std::string& operation,
          double seconds) {
  CellKey key{
      .test = test, .from = "node0", .bytes = bytes, .threads = threads, .operation = operation};
  return test::published(key, "seconds", seconds);
}

/// One thread communicates beside one that computes, or two with the computation on their cores.
Profile profile() {
  Profile p = test::one_machine();
  for (const int threads : {1, 2}) {
    p.cells.push_back(cell("contention_compute", threads, 0, "gemm_256", 1));
    double slower = threads == 1 ? 1.1 : 1.8; // 1.1, 1.2, 1.3 and 1.8, 1.9, 2.0
    for (const std::uint64_t bytes : {1U << 20U, 10U << 20U, 100U << 20U}) {
      p.cells.push_back(cell("contention_communication", threads, bytes, "", 2));
      p.cells.push_back(cell("contention_communication", threads, bytes, "gemm_256", 2 * slower));
      p.cells.push_back(cell("contention_compute", threads, bytes, "gemm_256", slower - 0.15));
      slower += 0.1;
    }
  }
  return p;
}

TEST(ContentionFactors, AreMediansOfTheFewestOrTheMostThreads) {
  const Profile p = profile();
  const ContentionFactors own = contention_factors(p, {"gemm_256", true});
  EXPECT_DOUBLE_EQ(own.communication, 1.2);
  EXPECT_DOUBLE_EQ(own.compute, 1.05); // of 0.95, 1.05 and 1.15
  const ContentionFactors shared = contention_factors(p, {"gemm_256", false});
  EXPECT_DOUBLE_EQ(shared.communication, 1.9);
  EXPECT_DOUBLE_EQ(shared.compute, 1.75);
}

TEST(ContentionFactors, OfWhatWasNotMeasuredAreAnErrorThatNamesWhatIsThere) {
  EXPECT_ERROR(contention_factors(profile(), {"gemm_1000", true}));
  EXPECT_REFUSED(input, "it has gemm_256", contention_factors(profile(), {"foo", true}));
  // Without any there is nothing to name, and both factors are needed.
  EXPECT_REFUSED(input, "--only contention_compute,contention_communication",
                 contention_factors(test::one_machine(), {"gemm_256", true}));
}

TEST(ContentionFactors, OfOneTakenForTheOtherAreAnError) {
  Profile p = profile();
  std::erase_if(p.cells, [](const Cell& c) { return c.key.threads == 2 && c.key.bytes > 0; });
  EXPECT_ERROR(contention_factors(p, {"gemm_256", true})); // only one kind
  Cell skipped = cell("contention_compute", 2, 1U << 20U, "gemm_256", 1);
  skipped.status = CellStatus::skipped;
  p.cells.push_back(skipped);
  EXPECT_ERROR(contention_factors(p, {"gemm_256", false}));
}

/// Backward 2 layers of 2 s, forward 2 of 1 s: 6 s.
Passes passes() {
  return {.end_bytes = {1, 2}, .backward_seconds = {2, 2}, .forward_seconds = {1, 1}};
}

Prediction of(double seconds) {
  return {.bound_seconds = seconds,
          .lo_seconds = seconds,
          .mid_seconds = seconds,
          .hi_seconds = seconds};
}

TEST(AddContention, StretchesWhatGoesOnTogether) {
  // 3 s of traffic: (18) has max(4 + 3/2, 2 + 3) + 2 = 7.5 s, 1.5 s of it exposed and 1.5 s beside
  // the 4 s of passes after the first. At factors of 1.5 and 2 the traffic ends first, after 3 s,
  // in which 2 s are computed: 5 s instead of 4, so 8.5 s.
  Prediction p = of(3);
  add_passes(p, passes(), {}, std::nullopt);
  EXPECT_DOUBLE_EQ(p.mid_seconds, 7.5);
  add_contention(p, passes(), 3, {1.5, 2});
  EXPECT_DOUBLE_EQ(p.mid_seconds, 8.5);
  EXPECT_DOUBLE_EQ(contention_seconds(p), 1);
  EXPECT_DOUBLE_EQ(p.lo_seconds, 8.5);
}

TEST(AddContention, WithFactorsOfOneIsThePredictionWithoutBitForBit) {
  for (const double traffic : {0.0, 0.1, 1.7, 3.3, 77.7}) {
    Prediction without = of(traffic);
    add_passes(without, passes(), {}, std::nullopt);
    Prediction with = without;
    add_contention(with, passes(), traffic, {});
    EXPECT_EQ(with.mid_seconds, without.mid_seconds);
    EXPECT_EQ(with.lo_seconds, without.lo_seconds);
    EXPECT_EQ(with.hi_seconds, without.hi_seconds);
  }
}

TEST(AddContention, IsLeftOutForPassesThatWait) {
  Prediction p = of(3);
  add_passes(p, passes(), {}, std::nullopt);
  const Prediction alone = p;
  add_contention(p, passes(), 3, {1.5, 2});
  EXPECT_NE(p, alone);
  EXPECT_EQ(without(p, k_contention), alone);
}

/// One machine with the given processors.
Profile machine(std::uint64_t processors) {
  Profile p = test::empty_profile("one machine");
  p.machines = {{"m", "", 1, processors, 0, "", {}}};
  test::add_rate(p,
                 {.test = "fabric_aggregate",
                  .from = "m",
                  .to = "m",
                  .bytes = 1U << 20U,
                  .pairs = 1,
                  .transport = "host",
                  .direction = "two_way",
                  .state = "cold"},
                 1e9);
  return p;
}

TEST(ShareProcessors, PassesAndTrafficTakeTurnsWhereBothNeedAll) {
  // 3 s of traffic, of which (18) leaves 1.5 s exposed, beside 6 s of passes.
  const auto seconds = [](std::uint64_t processors, std::optional<std::uint64_t> threads) {
    const Profile profile = machine(processors);
    const CostModel model(profile, default_roles(profile, 2, 0, 1), "", {});
    Passes working = passes();
    working.threads = threads;
    Prediction p = of(3);
    add_passes(p, working, {}, std::nullopt);
    share_processors(p, working, 3, model);
    return p.mid_seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(2, 1), 6 + 3); // nothing is hidden: the sum of both
  EXPECT_DOUBLE_EQ(seconds(2, 8), 6 + 3);
  // 2 threads and 2 lanes on 3 processors: turns of 4/3, and 1.5 s of traffic last 2 s beside 1.5 s
  // of the passes.
  EXPECT_DOUBLE_EQ(seconds(3, 1), 7.5 + 0.5);
  EXPECT_DOUBLE_EQ(seconds(4, 1), 7.5); // a processor for each
  EXPECT_DOUBLE_EQ(seconds(2, std::nullopt), 7.5);
}

TEST(AddContention, OfTrafficThatIsAllExposedIsNothing) {
  Prediction p = of(8);
  add_passes(p, passes(), {}, 14);
  add_contention(p, passes(), 8, {2, 2});
  EXPECT_DOUBLE_EQ(p.mid_seconds, 14);
}

} // namespace
} // namespace reckon
