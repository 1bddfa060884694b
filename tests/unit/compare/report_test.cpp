// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"
#include "find.hpp"
#include "support/example_documents.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

/// Iterations of about `median` seconds, 10 of them over +- 1 %.
Report report_of(double median) {
  Report r = example_report();
  r.kind = "run";
  r.simulation.reset();
  r.iteration_seconds.clear();
  for (int i = 0; i < 10; ++i) {
    r.iteration_seconds.push_back(median * (0.99 + 0.02 * i / 9));
  }
  r.p50_seconds = median;
  r.spread = 0.005;
  r.error = median / r.prediction.mid_seconds - 1;
  r.within_tolerance = r.error <= 0.15;
  r.verification = {true, 4094, 0, ""};
  return r;
}

TEST(CompareReports, ReportsATimeBeyondNoiseWithItsErrorAndVerdict) {
  // Predicted 0.75 s. 0.8 is 6.7 % above, 0.9 is 20 % above and outside of 15 %.
  const Comparison c = compare(report_of(0.8), report_of(0.9));
  EXPECT_THAT(places(c), ElementsAre("iteration_seconds", "error", "within_tolerance"));
  EXPECT_NEAR(c.differences[0].change.value(), 0.125, 1e-9);
  EXPECT_EQ(c.differences[0].effect, Effect::worse);
  EXPECT_EQ(c.differences[2].effect, Effect::neutral);
}

TEST(CompareReports, DoesNotCallAFasterRunWorse) {
  // 0.5 s is 33 % below the prediction and outside of 15 %, which says nothing against the run.
  Report faster = report_of(0.5);
  faster.within_tolerance = false;
  const Comparison c = compare(report_of(0.8), faster, {.only_worse = true});
  EXPECT_TRUE(c.same());
  EXPECT_NE(at(c, "within_tolerance"), nullptr);
}

TEST(CompareReports, SaysWhatStaysWithinTheTolerance) {
  Report b = report_of(0.918); // 14.75 % more
  const CompareOptions options{.bandwidth_tolerance = 0.15};
  const Comparison c = compare(report_of(0.8), b, options);
  EXPECT_TRUE(c.same());
  ASSERT_TRUE(c.largest_within.has_value());
  EXPECT_EQ(c.largest_within->where, "iteration_seconds");
  EXPECT_THAT(c.largest_within->note, HasSubstr("within the tolerance of 15 %"));
}

TEST(CompareReports, IgnoresAVerdictThatFlippedWithinNoise) {
  // 0.86 is 14.7 % above the prediction, 0.87 is 16 %: the verdict flips, the time moved by 1.2 %.
  const Comparison c = compare(report_of(0.86), report_of(0.87));
  EXPECT_THAT(c.differences, IsEmpty());
}

TEST(CompareReports, IgnoresTheWordsOfACauseWhileTheTimesAgree) {
  const Report a = report_of(0.8);
  Report b = a;
  b.cause = "reduction: 3 % more than predicted";
  b.diagnosis = Diagnosis{.verdict = "the memory of here carries 0.8", .next = {"reckon probe"}};
  b.context["clock"] = "ranks agree within 20 us";
  b.context["other_programs"] = "3 % of the processors";
  EXPECT_TRUE(compare(a, b).same());
  b = report_of(0.9);
  b.cause = "reduction: 20 % more than predicted";
  EXPECT_THAT(places(compare(a, b)), Contains("cause"));
}

TEST(CompareReports, NamesTheStageThatMadeTheDifference) {
  const Report a = report_of(0.8);
  Report b = report_of(0.9);
  b.stages[0].measured_seconds = 0.9;
  Report with = a;
  with.stages[1].measured_seconds = 0.2;
  b.stages[1].measured_seconds = 0.3;
  const Comparison c = compare(with, b);
  const Difference* d = at(c, "stages/fill/measured_seconds");
  ASSERT_NE(d, nullptr);
  EXPECT_NEAR(d->change.value(), 0.5, 1e-9);
  EXPECT_EQ(at(c, "stages/total/measured_seconds"), nullptr); // iteration_seconds says it
}

TEST(CompareReports, LeavesThreeIterationsUndecided) {
  Report a = report_of(0.8);
  Report b = report_of(0.9);
  a.iteration_seconds.resize(3);
  b.iteration_seconds.resize(3);
  const Comparison c = compare(a, b);
  EXPECT_TRUE(c.same());
  ASSERT_THAT(c.undecided, SizeIs(1));
  EXPECT_THAT(c.undecided[0].note, HasSubstr("too few samples"));
}

TEST(CompareReports, HoldsTwoSimulationsAgainstEachOtherWithoutNoise) {
  Report a = example_report();
  Report b = a;
  EXPECT_TRUE(compare(a, b).same());
  b.p50_seconds *= 1.001;
  const Comparison c = compare(a, b);
  EXPECT_TRUE(c.undecided.empty());
  const Difference* const d = at(c, "iteration_seconds");
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(d->group, "simulated");
  EXPECT_EQ(d->effect, Effect::worse);
}

TEST(CompareReports, ReportsWrongSumsAndBytes) {
  const Report a = report_of(0.8);
  Report b = a;
  b.verification.ok = false;
  b.verification.first_error = "rank 0, part 1";
  b.ranks[0].egress_bytes += 1;
  const Comparison c = compare(a, b);
  EXPECT_THAT(places(c), ElementsAre("verification/ok", "ranks/0/egress_bytes"));
  EXPECT_EQ(c.differences[0].effect, Effect::worse);
  EXPECT_THAT(c.differences[0].after.text, HasSubstr("rank 0, part 1"));
}

TEST(CompareReports, IgnoresHowOftenSumsWereCheckedUnlessNever) {
  const Report a = report_of(0.8);
  Report b = a;
  b.verification.checked_bytes *= 3; // more iterations within the same budget
  EXPECT_THAT(compare(a, b).differences, IsEmpty());
  b.verification.checked_bytes = 0;
  EXPECT_THAT(places(compare(a, b)), ElementsAre("verification/checked_bytes"));
}

TEST(CompareReports, SaysWhenOnlyOneOfThemIsEmulated) {
  Report own = report_of(0.8), emulated = report_of(0.8);
  own.emulation.reset();
  const Comparison c = compare(own, emulated);
  ASSERT_THAT(c.differences, SizeIs(1));
  EXPECT_EQ(c.differences[0].where, "emulation");
  EXPECT_TRUE(c.differences[0].before.absent());
  EXPECT_THAT(compare(own, own).differences, IsEmpty());
}

TEST(CompareReports, NamesAnotherPlanAsTheCause) {
  const Report a = report_of(0.8);
  Report b = a;
  b.plan.digest = "sha256:other";
  b.prediction.mid_seconds = 0.7;
  b.stages[0].predicted_seconds = 0.7;
  const Comparison c = compare(a, b);
  EXPECT_THAT(places(c), ElementsAre("prediction/mid_seconds", "stages/total/predicted_seconds"));
  EXPECT_THAT(causes(c), ElementsAre("plan"));
}

} // namespace
} // namespace reckon
