// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"
#include "find.hpp"
#include "support/example_documents.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

/// `n` parts of 100 bytes, one after another, all on server 0 and lane 0.
Plan plan_of_parts(std::size_t n) {
  Plan plan = example_plan();
  plan.gradient_bytes = n * 100;
  plan.parts = {};
  for (std::size_t i = 0; i < n; ++i) {
    plan.parts.offset_bytes.push_back(i * 100);
    plan.parts.bytes.push_back(100);
    plan.parts.server.push_back(0);
    plan.parts.lane.push_back(0);
  }
  return plan;
}

/// The comparison of a plan with the same plan after `change`.
template <class Change>
Comparison changed(const Plan& before, const Change& change) {
  Plan after = before;
  change(after);
  return compare(before, after);
}

TEST(ComparePlans, FindsNothingBetweenAPlanAndItself) {
  const Comparison c = changed(example_plan(), [](Plan&) {});
  EXPECT_TRUE(c.same());
  EXPECT_THAT(c.differences, IsEmpty());
  EXPECT_THAT(c.undecided, IsEmpty());
  EXPECT_THAT(c.causes, IsEmpty());
  EXPECT_THAT(c.warnings, IsEmpty());
  EXPECT_GT(c.compared, 20U);
}

TEST(ComparePlans, NamesThePartsThatMovedBetweenServers) {
  const Comparison c =
      changed(plan_of_parts(6), [](Plan& after) { after.parts.server = {0, 0, 2, 2, 2, 1}; });
  ASSERT_THAT(places(c), ElementsAre("parts/server", "parts/server"));
  EXPECT_EQ(c.differences[0].before.text, "rank 0");
  EXPECT_EQ(c.differences[0].after.text, "rank 1");
  EXPECT_EQ(c.differences[0].parts, 1U);
  EXPECT_EQ(c.differences[0].bytes, 100U);
  EXPECT_EQ(c.differences[1].after.text, "rank 2");
  EXPECT_EQ(c.differences[1].parts, 3U);
  EXPECT_EQ(c.differences[1].bytes, 300U);
}

TEST(ComparePlans, FollowsTheBytesWhenTheGradientIsCutAnotherWay) {
  // 0-300 in three parts against 0-150 and 150-300. Server 1 gets bytes 150-300: of the second
  // part its upper half, and all of the third.
  const Comparison c = changed(plan_of_parts(3), [](Plan& after) {
    after.parts = {{0, 150}, {150, 150}, {0, 1}, {0, 0}};
  });
  const Difference* moved = at(c, "parts/server");
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(moved->bytes, 150U);
  EXPECT_EQ(moved->parts, 2U); // stretches: 150-200 and 200-300
  ASSERT_NE(at(c, "parts"), nullptr);
  EXPECT_EQ(at(c, "parts")->before.number, 3);
  EXPECT_EQ(at(c, "parts")->after.number, 2);
}

TEST(ComparePlans, TellsAnotherLaneOfTheSameServerFromAnotherServer) {
  const Comparison c = changed(plan_of_parts(2), [](Plan& after) { after.parts.lane = {0, 1}; });
  ASSERT_THAT(places(c), ElementsAre("parts/lane of rank 0"));
  EXPECT_EQ(c.differences[0].kind, "lane");
  EXPECT_EQ(c.differences[0].before.text, "lane 0");
  EXPECT_EQ(c.differences[0].after.text, "lane 1");
  EXPECT_EQ(c.differences[0].bytes, 100U);
}

TEST(ComparePlans, SeesThatTheSamePartsAreSentInAnotherOrder) {
  const Comparison c = changed(plan_of_parts(4), [](Plan& after) {
    std::swap(after.parts.offset_bytes[1], after.parts.offset_bytes[3]);
  });
  ASSERT_EQ(c.differences.size(), 1U);
  EXPECT_EQ(c.differences[0].kind, "order");
  EXPECT_EQ(c.differences[0].parts, 2U);
  EXPECT_EQ(c.differences[0].bytes, 200U);
}

TEST(ComparePlans, DoesNotRelateOffsetsOfDifferentGradients) {
  const Comparison c = compare(plan_of_parts(4), plan_of_parts(5));
  EXPECT_NE(at(c, "gradient_bytes"), nullptr);
  EXPECT_EQ(at(c, "parts/server"), nullptr);
}

TEST(ComparePlans, ReportsTheTimesAndWhatTheyConsistOf) {
  const Comparison c = changed(example_plan(), [](Plan& after) {
    after.prediction.mid_seconds = 0.9; // from 0.75: 20 % more
    after.prediction.terms[0].seconds = 0.65;
  });
  ASSERT_THAT(places(c),
              ElementsAre("prediction/mid_seconds", "prediction/terms/transport/seconds"));
  EXPECT_NEAR(c.differences[0].change.value(), 0.2, 1e-12);
  EXPECT_EQ(c.differences[0].effect, Effect::worse);
}

TEST(ComparePlans, TakesRoundingForNoChangeAndATinyChangeForOne) {
  const Plan before = example_plan();
  Plan after = before;
  after.prediction.mid_seconds *= 1 + 1e-12;
  EXPECT_TRUE(compare(before, after).same());
  after.prediction.mid_seconds = before.prediction.mid_seconds * (1 + 1e-6);
  EXPECT_FALSE(compare(before, after).same());
  EXPECT_TRUE(compare(before, after, {.exact_tolerance = 0.05}).same());
}

TEST(ComparePlans, NamesTheInputsBehindTheChange) {
  const Comparison c = changed(example_plan(), [](Plan& after) {
    after.profile.digest = "sha256:other";
    after.options["servers"] = "5";
    after.options["strategy"] = "ring";
    after.quantities[0].value = 1500;
    after.quantities[0].inputs["k"] = 2;
  });
  EXPECT_THAT(causes(c), ElementsAre("profile", "option servers", "option strategy",
                                     "input k of worker_share_bytes"));
  EXPECT_TRUE(c.causes[1].before.absent());
  EXPECT_EQ(c.causes[1].after.text, "5");
  EXPECT_EQ(c.causes[3].before.number, 1);
  EXPECT_EQ(c.causes[3].after.number, 2);
  ASSERT_THAT(places(c), ElementsAre("quantities/worker_share_bytes"));
  EXPECT_EQ(c.differences[0].before.unit, "bytes");
}

TEST(ComparePlans, NamesWhatHoldsForAnOptionThatWasNotAskedFor) {
  Plan after = example_plan();
  after.options["queues"] = "fcfs";
  after.options["update"] = "server";
  const Comparison c = compare(example_plan(), after);
  ASSERT_THAT(causes(c), ElementsAre("option queues", "option update"));
  EXPECT_EQ(c.causes[0].before.text, "client");
  EXPECT_EQ(c.causes[1].before.text, "none");
  const Comparison mirrored = compare(after, example_plan());
  ASSERT_EQ(mirrored.causes.size(), 2U);
  EXPECT_EQ(mirrored.causes[0].after.text, "client");
}

TEST(ComparePlans, CallsTheSamePlanMadeFromAnotherProfileTheSame) {
  const Comparison c = changed(example_plan(), [](Plan& after) {
    after.profile = {"renamed", "sha256:other"};
  });
  EXPECT_TRUE(c.same());
  EXPECT_THAT(causes(c), ElementsAre("profile"));
}

TEST(ComparePlans, DoesNotMindTheNameOfTheSameProfile) {
  Plan after = example_plan();
  after.profile.name = "renamed";
  EXPECT_THAT(compare(example_plan(), after).causes, IsEmpty());
}

TEST(ComparePlans, DoesNotCallASolvedQuantityTheCauseOfAnother) {
  Plan before = example_plan();
  before.quantities.push_back({"time_seconds", 1, "eq. 2", {{"worker_share_bytes", 2046.5}}});
  Plan after = before;
  after.quantities[0].value = 1000;
  after.quantities[1].inputs["worker_share_bytes"] = 1000;
  EXPECT_THAT(compare(before, after).causes, IsEmpty());
}

TEST(ComparePlans, TakesWhatWasReadFromTheProfileForACause) {
  Plan before = example_plan();
  before.quantities.push_back({"profile", 0, "reduce_sum: 4 cells", {}});
  Plan after = example_plan();
  after.quantities.push_back({"profile", 0, "reduce_sum: 5 cells", {}});
  const Comparison c = compare(before, after);
  EXPECT_TRUE(c.same());
  EXPECT_THAT(causes(c), ElementsAre("read from the profile", "read from the profile"));
}

TEST(ComparePlans, SaysThatThePlannerChangedWhenNoInputDid) {
  Plan after = example_plan();
  after.part_bytes *= 2;
  EXPECT_THAT(compare(example_plan(), after).warnings, ElementsAre(test::Says("planner")));
}

TEST(ComparePlans, ListsRanksThatAreNewOrGone) {
  const Comparison c =
      changed(example_plan(), [](Plan& after) { after.ranks.push_back(after.ranks[2]); });
  ASSERT_THAT(places(c), ElementsAre("ranks/3"));
  EXPECT_TRUE(c.differences[0].before.absent());
  EXPECT_EQ(c.differences[0].after.text, "m0");
}

TEST(ComparePlans, SeesEveryFieldOfARank) {
  const Plan before = example_plan();
  Plan after = before;
  PlanRank& r = after.ranks[1];
  r.machine = "m1";
  r.server = false;
  r.lanes = 3;
  r.share_bytes = 1;
  r.assigned_bytes = 2;
  r.port_bytes_per_second = 3;
  r.lane_places = {{"eth0", 0, 1}};
  r.egress_bytes = 4;
  r.ingress_bytes = 5;
  EXPECT_THAT(places(compare(before, after)),
              ElementsAre("ranks/1/machine", "ranks/1/server", "ranks/1/lanes",
                          "ranks/1/share_bytes", "ranks/1/assigned_bytes", "ranks/1/lane_places/0",
                          "ranks/1/port_bytes_per_second", "ranks/1/egress_bytes",
                          "ranks/1/ingress_bytes"));
}

TEST(ComparePlans, SeesAnotherStrategyTransportWindowPartSizeAndRunnerUp) {
  const Plan before = example_plan();
  Plan after = before;
  after.strategy = "ring";
  after.transport = "shm";
  after.window_parts = 7;
  after.stores = before.stores == Stores::cached ? Stores::streaming : Stores::cached;
  after.part_bytes = 4096;
  after.runner_up = "byteps_split";
  after.assignment_gap = 0.5;
  after.prediction.bound_by = "memory";
  const auto where = places(compare(before, after));
  for (const char* place : {"strategy", "transport", "window_parts", "part_bytes", "runner_up",
                            "stores", "assignment_gap", "prediction/bound_by"}) {
    EXPECT_THAT(where, Contains(place));
  }
}

TEST(ComparePlans, SaysWhyACandidateNoLongerApplies) {
  const Comparison c = changed(example_plan(), [](Plan& after) {
    after.candidates[1] = {"ring", std::nullopt, "fewer than 2 workers"};
  });
  EXPECT_NE(at(c, "candidates/ring/prediction"), nullptr);
  const Difference* d = at(c, "candidates/ring/reason");
  ASSERT_NE(d, nullptr);
  EXPECT_THAT(d->after.text, test::Says("2 workers"));
}

TEST(ComparePlans, CountsOnlyWhatGotWorseWhenAsked) {
  const Plan before = example_plan();
  Plan after = before;
  after.window_parts = 9;
  const CompareOptions only_worse{.only_worse = true};
  EXPECT_TRUE(compare(before, after, only_worse).same());
  EXPECT_THAT(compare(before, after, only_worse).differences, SizeIs(1));
  after.prediction.mid_seconds *= 0.9;
  EXPECT_TRUE(compare(before, after, only_worse).same());
  EXPECT_FALSE(compare(after, before, only_worse).same());
}

TEST(ComparePlans, OnlyALongerPredictedTimeIsWorse) {
  // Faster, though a solver left a larger gap, a term grew, and another strategy became slower.
  const Comparison c = changed(example_plan(), [](Plan& after) {
    after.prediction.mid_seconds *= 0.9;
    after.prediction.hi_seconds *= 1.1;
    after.prediction.terms[1].seconds *= 1.5;
    after.assignment_gap *= 2;
    after.candidates[1].prediction->mid_seconds *= 2;
    after.resources[0].bytes_per_second /= 2;
  });
  EXPECT_THAT(c.differences, SizeIs(6));
  for (const Difference& d : c.differences) {
    EXPECT_EQ(d.effect, d.where == "prediction/mid_seconds" ? Effect::better : Effect::neutral)
        << d.where;
  }
}

TEST(ComparePlans, SeesThatPartsGoByOtherTrees) {
  const Comparison c = changed(example_plan(), [](Plan& after) { after.parts.tree = {0, 0, 0}; });
  ASSERT_THAT(places(c), ElementsAre("parts/tree of rank 2"));
  EXPECT_EQ(c.differences[0].bytes, 2048U);
}

TEST(CompareDocuments, RefusesDocumentsOfUnlikeKinds) {
  EXPECT_REFUSED(input, "profile", compare(Document(example_plan()), Document(example_profile())));
}

} // namespace
} // namespace reckon
