// SPDX-License-Identifier: Apache-2.0
// Plans for ranks that share a machine on which small plans were rehearsed.
#include "fixtures.hpp"

#include "documents/cells.hpp"
#include "documents/document.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace reckon {
namespace {

using namespace test;

constexpr std::uint64_t k_part = 1U << 20U;
constexpr double k_run_to_run = 0.081; ///< in the range of each prediction, as a logarithm

struct Case {
  std::string strategy = "ps_colocated";
  std::uint64_t workers = 2, servers = 0;
  bool in_place = false;
};

/// As probe names it.
CellKey key_of(const Case& of) {
  return {.test = k_rehearsal,
          .from = "m0",
          .bytes = k_part,
          .threads = static_cast<int>(of.workers + of.servers),
          .sources = static_cast<int>(of.workers),
          .dtype = "fp32",
          .transport = "host",
          .operation = of.strategy,
          .state = of.in_place ? "in_place" : "sent"};
}

/// Of a gradient as long as that of its rehearsal.
Prediction predicted(const Profile& profile, const Case& of) {
  const std::uint64_t bytes = rehearsed_gradient_bytes(key_of(of));
  return plan_for(profile, one_tensor(bytes / sizeof(float)), of.workers, of.servers,
                  {.strategy = of.strategy, .part_bytes = k_part, .sums_in_place = of.in_place})
      .prediction;
}

/// Adds that the rehearsal took so many times what the other cells say. The samples are of what it
/// took in the mean, `spread` more and `spread` less.
void rehearse(Profile& profile, const Case& of, double times, double spread = 0) {
  const double expected = predicted(machine_that_shares(), of).mid_seconds;
  const double rate = static_cast<double>(rehearsed_gradient_bytes(key_of(of))) / expected / times;
  add_rate(profile, key_of(of), rate);
  profile.cells.back().samples = {rate * (1 - spread), rate, rate * (1 + spread)};
}

double times(const Profile& profile, const Case& of) {
  return predicted(profile, of).mid_seconds / predicted(machine_that_shares(), of).mid_seconds;
}

TEST(Rehearsed, APlanTakesWhatItsRehearsalTook) {
  for (const Case& of : {Case{}, Case{.in_place = true}, Case{"ring", 4},
                         Case{"ps_noncolocated", 2, 1}, Case{"ps_noncolocated", 4, 1, true}}) {
    Profile profile = machine_that_shares();
    rehearse(profile, of, 1.7);
    EXPECT_NEAR(times(profile, of), 1.7, 1e-3) << key_of(of).text();
  }
}

TEST(Rehearsed, SumsThatAreSentSayNothingOfThoseInPlace) {
  Profile profile = machine_that_shares();
  rehearse(profile, {}, 1.7);
  EXPECT_NEAR(times(profile, {.in_place = true}), 1, 1e-9);
}

TEST(Rehearsed, BetweenTwoNumbersOfRanksBothCount) {
  Profile profile = machine_that_shares();
  rehearse(profile, {.workers = 2}, 1);
  rehearse(profile, {.workers = 8}, 2);
  EXPECT_NEAR(times(profile, {.workers = 4}), std::sqrt(2), 1e-3);
  EXPECT_NEAR(times(profile, {.workers = 16}), 2, 1e-3) << "beyond them the last one does";
}

TEST(Rehearsed, RanksThatOnlySumCountForThePartThatTheySum) {
  Profile profile = machine_that_shares();
  rehearse(profile, {.workers = 3}, 1);
  rehearse(profile, {"ps_noncolocated", 3, 1}, 4);
  EXPECT_NEAR(times(profile, {"ps_noncolocated", 3, 1}), 4, 1e-3);
  // Equation 6: a worker sums (n - k) / (n^2 + kn - 2k) = 2/10, the server 4/10.
  EXPECT_NEAR(times(profile, {"byteps_split", 3, 1}), std::pow(4, 0.4), 0.02);
}

TEST(Rehearsed, OneWorkerHasNothingToSumWhoeverServes) {
  Profile profile = machine_that_shares();
  rehearse(profile, {}, 1.5);
  rehearse(profile, {"ps_noncolocated", 2, 1}, 3);
  for (const char* const strategy : {"auto", "ps_noncolocated"}) {
    const Plan plan = plan_for(profile, one_tensor(4U << 20U), 1, 1, {.strategy = strategy});
    EXPECT_NO_THROW(static_cast<void>(canonical_text(plan))) << "all of its numbers are finite";
    EXPECT_TRUE(std::isfinite(plan.prediction.mid_seconds)) << strategy;
  }
}

TEST(Rehearsed, ARingThatWasNotPlayedTakesAsMuchMoreAsAServerOnEachRank) {
  Profile profile = machine_that_shares();
  rehearse(profile, {.workers = 4}, 1.5);
  EXPECT_NEAR(times(profile, {"ring", 4}), 1.5, 1e-3);
  rehearse(profile, {"ring", 4}, 1.2);
  EXPECT_NEAR(times(profile, {"ring", 4}), 1.2, 1e-3);
}

TEST(Rehearsed, TermsAddUpToThePredictionAndNothingIsBelowTheBound) {
  Profile profile = machine_that_shares();
  rehearse(profile, {}, 1.7);
  const Prediction slow = predicted(profile, {});
  double sum = 0;
  for (const Term& term : slow.terms) {
    sum += term.seconds;
  }
  EXPECT_NEAR(sum, slow.mid_seconds, 1e-9);
  profile = machine_that_shares();
  rehearse(profile, {}, 0.001);
  const Prediction fast = predicted(profile, {});
  EXPECT_DOUBLE_EQ(fast.mid_seconds, fast.bound_seconds);
  EXPECT_DOUBLE_EQ(fast.lo_seconds, fast.bound_seconds);
  EXPECT_DOUBLE_EQ(fast.bound_seconds, predicted(machine_that_shares(), {}).bound_seconds);
}

TEST(Rehearsed, TheRangeIsOfWhatRehearsalsTookFromTimeToTime) {
  Profile profile = machine_that_shares();
  rehearse(profile, {}, 1.7, 0.125);
  const Prediction p = predicted(profile, {});
  // A tenth and nine tenths of three samples lie 0.8 of the spread from the middle.
  EXPECT_NEAR(std::log(p.hi_seconds / p.mid_seconds), std::hypot(std::log(0.9), k_run_to_run),
              1e-3);
  EXPECT_NEAR(std::log(p.lo_seconds / p.mid_seconds), -std::hypot(std::log(1.1), k_run_to_run),
              1e-3);
}

TEST(Rehearsed, TheRangeIsAsWideAsRehearsalsAreFromWhatTheOthersSayOfThem) {
  Profile ends = machine_that_shares();
  rehearse(ends, {.workers = 2}, 1);
  rehearse(ends, {.workers = 8}, 2);
  EXPECT_NEAR(std::log(predicted(ends, {}).hi_seconds / predicted(ends, {}).mid_seconds),
              k_run_to_run, 1e-3)
      << "neither lies between others";
  // By two and eight ranks as expected; so it should be by four.
  Profile profile = machine_that_shares();
  rehearse(profile, {.workers = 2}, 1);
  rehearse(profile, {.workers = 8}, 1);
  rehearse(profile, {.workers = 4}, 1.3);
  for (const std::uint64_t workers : {2U, 4U, 6U}) {
    const Prediction p = predicted(profile, {.workers = workers});
    EXPECT_NEAR(std::log(p.hi_seconds / p.mid_seconds), std::hypot(std::log(1.3), k_run_to_run),
                2e-3);
    EXPECT_NEAR(p.mid_seconds / p.lo_seconds, p.hi_seconds / p.mid_seconds, 1e-9);
  }
}

TEST(Rehearsed, PartsAreNoShorterThanThoseRehearsedUnlessARankWouldHaveTooFew) {
  const auto part_bytes = [](const Profile& profile, std::uint64_t elements) {
    return plan_for(profile, one_tensor(elements), 2, 0, {.sums_in_place = false}).part_bytes;
  };
  Profile profile = machine_that_shares();
  ASSERT_LT(part_bytes(profile, 64U << 20U), 8U << 20U);
  rehearse(profile, {}, 1);
  profile.cells.back().key.bytes = 8U << 20U;
  EXPECT_GE(part_bytes(profile, 64U << 20U), 8U << 20U);
  EXPECT_LE(part_bytes(profile, 1U << 18U), 512U << 10U) << "each of two ranks sums one";
}

TEST(Rehearsed, ARunPlaysAgainWhatIsMostLikeItsPlan) {
  Profile profile = machine_that_shares();
  for (const Case& of :
       {Case{.workers = 2}, Case{.workers = 9}, Case{.workers = 4, .in_place = true},
        Case{"ps_noncolocated", 2, 1}, Case{"ps_noncolocated", 8, 1}, Case{"ring", 2}}) {
    rehearse(profile, of, 1, 0.2);
  }
  rehearse(profile, {.workers = 2}, 1.5, 0.2);
  profile.cells.back().key.bytes = 4 * k_part;
  const auto again = [&](const Case& of, std::uint64_t part_bytes = k_part) {
    return plan_for(
               profile, one_tensor(64U << 20U), of.workers, of.servers,
               {.strategy = of.strategy, .part_bytes = part_bytes, .sums_in_place = of.in_place})
        .rehearsal;
  };
  struct Like {
    Case plan;
    std::string strategy;
    int ranks = 0, workers = 0;
  };
  for (const Like& like : {Like{{.workers = 3}, "ps_colocated", 2, 2}, // 1.5 * 2, and 9 / 3
                           Like{{.workers = 5}, "ps_colocated", 9, 9}, // 2.5 * 2, and 9 / 1.8
                           Like{{.workers = 6}, "ps_colocated", 9, 9},
                           Like{{.workers = 2, .in_place = true}, "ps_colocated", 4, 4},
                           Like{{"ps_noncolocated", 4, 1}, "ps_noncolocated", 3, 2},
                           Like{{"ps_noncolocated", 6, 2}, "ps_noncolocated", 9, 8},
                           Like{{"ring", 8}, "ring", 2, 2}}) {
    const auto found = again(like.plan);
    ASSERT_TRUE(found) << key_of(like.plan).text();
    EXPECT_EQ(found->strategy, like.strategy) << key_of(like.plan).text();
    EXPECT_EQ(found->ranks, like.ranks) << key_of(like.plan).text();
    EXPECT_EQ(found->workers, like.workers) << key_of(like.plan).text();
    EXPECT_EQ(found->in_place, like.plan.in_place);
    EXPECT_EQ(found->part_bytes, k_part);
  }
  const auto longer = again({.workers = 2}, 3 * k_part);
  ASSERT_TRUE(longer);
  EXPECT_EQ(longer->part_bytes, 4 * k_part);
  const double rate = profile.cells.back().p50;
  EXPECT_NEAR(longer->mid_seconds, 16 * 4 * k_part / rate, 1e-9) << "64 MiB of each of two ranks";
  EXPECT_LT(longer->lo_seconds, longer->mid_seconds);
  EXPECT_GT(longer->hi_seconds, longer->mid_seconds);
  EXPECT_FALSE(plan_for(machine_that_shares(), one_tensor(64U << 20U), 2, 0, {}).rehearsal);
}

} // namespace
} // namespace reckon
