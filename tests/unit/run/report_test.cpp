// SPDX-License-Identifier: Apache-2.0
#include "run/report.hpp"

#include "run/checks.hpp"
#include "run/emulation.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

constexpr std::int64_t k_ms = 1'000'000;

/// Two ranks on one machine; predicted 60 ms = 40 transport + 19 reduction + 1 fill, bound 30 ms.
struct Fixture {
  Plan plan;
  JobResult result;
  RunOptions options;

  Fixture() {
    plan.ranks.resize(2);
    for (PlanRank& r : plan.ranks) {
      r.worker = true;
      r.egress_bytes = r.ingress_bytes = 1000;
    }
    plan.prediction.bound_seconds = 0.030;
    plan.prediction.lo_seconds = 0.058;
    plan.prediction.mid_seconds = 0.060;
    plan.prediction.hi_seconds = 0.062;
    plan.prediction.terms = {{"transport", 0.040}, {"reduction", 0.019}, {"fill", 0.001}};
    result.hosts = {"here", "here"};
    result.verification.resize(2);
  }
  /// Rank 0 is ready 5 ms before rank 1; both compute `reduce` ms and use `cpu` ms.
  void iterations(std::int64_t total_ms, std::int64_t reduce_ms, std::int64_t cpu_ms) {
    for (int i = 0; i < 5; ++i) {
      std::vector<RankSample> samples(2);
      for (std::size_t r = 0; r < 2; ++r) {
        RankSample& s = samples[r];
        s.ready_ns = 1000 * k_ms * i + (r == 0 ? 0 : 5 * k_ms);
        s.begin_ns = s.start_ns = 1000 * k_ms * i + 5 * k_ms; // no way is long
        s.end_ns = s.start_ns + total_ms * k_ms - (r == 0 ? k_ms : 0);
        s.reduce_ns = reduce_ms * k_ms;
        s.lane_ns = total_ms * k_ms;
        s.cpu_ns = cpu_ms * k_ms;
      }
      result.iterations.push_back(samples);
    }
  }
  [[nodiscard]] Report report(double tolerance = 0.15) const {
    return make_report(plan, {"plan", ""}, result, options, tolerance, 2);
  }
};

/// When the machine was probed its iterations took 9 to 11 ms.
const RehearsalPlan k_rehearsal{"ps_colocated", true, 2, 2, 1 << 20, 0.009, 0.010, 0.011};

/// As k_rehearsal took so many milliseconds before the run and after it.
Report at_speed(Report report, double before_ms, double after_ms) {
  const auto seconds = [](double ms) { return std::vector{0.9e-3 * ms, 1e-3 * ms, 2e-3 * ms}; };
  judge_at_speed_now(report, k_rehearsal, seconds(before_ms), seconds(after_ms));
  return report;
}

TEST(ReportOfARun, ASlowerMachineIsToldFromAWrongModel) {
  // 18 and 27 ms instead of 10: at least 18, so that 60 ms predicted are 108.
  Fixture f;
  f.iterations(105, 20, 105);
  EXPECT_FALSE(f.report().within_tolerance);
  const Report slower = at_speed(f.report(), 18, 27);
  ASSERT_TRUE(slower.machine_now);
  EXPECT_TRUE(slower.machine_now->changed);
  EXPECT_NEAR(slower.machine_now->predicted_seconds, 0.108, 1e-9);
  EXPECT_NEAR(slower.machine_now->error, 105.0 / 108 - 1, 1e-9);
  EXPECT_NEAR(slower.error, 105.0 / 60 - 1, 1e-9); // as it was predicted
  EXPECT_TRUE(slower.within_tolerance);
  EXPECT_THAT(slower.cause, testing::StartsWith("the machine is slower than when it was probed "
                                                "(+75.0 %): ps_colocated by 2 ranks, in place"));
  EXPECT_THAT(slower.cause, testing::HasSubstr("10 ms then and 18 ms now"));
  // As fast as it was, before or after: then the model is wrong, and another cause is looked for.
  for (const double after_ms : {9.5, 27.0}) {
    const Report wrong = at_speed(f.report(), 10.5, after_ms);
    EXPECT_FALSE(wrong.machine_now->changed);
    EXPECT_FALSE(wrong.within_tolerance);
    EXPECT_EQ(wrong.cause, f.report().cause);
  }
  // Faster, by as much.
  Fixture g;
  g.iterations(45, 15, 45);
  EXPECT_THAT(at_speed(g.report(), 7, 7).cause, testing::StartsWith("the machine is faster"));
  // A run as predicted stays one, whatever the rehearsals took.
  Fixture h;
  h.iterations(61, 19, 61);
  EXPECT_EQ(at_speed(h.report(), 20, 20).cause, h.report().cause);
  EXPECT_TRUE(at_speed(h.report(), 20, 20).within_tolerance);
}

TEST(ReportOfARun, PassesTakeAsLongOnASlowerMachine) { // 20 of 60 ms pass whatever the memory does
  Fixture f;
  f.plan.prediction.terms = {{"passes", 0.020}, {"exposed", 0.040}};
  f.iterations(100, 20, 100);
  EXPECT_NEAR(at_speed(f.report(), 20, 20).machine_now->predicted_seconds, 0.100, 1e-9);
}

TEST(ReportOfARun, OtherProgramsSlowTheRehearsalsTooAndAreNamedFirst) {
  // 60 ms predicted. Others have 83 % of 2 processors: 166 of 2 x 100 ms; rehearsals twice as long
  // would explain 120 ms.
  Fixture f;
  f.iterations(100, 19, 17);
  const auto others = [&](std::int64_t ms) {
    for (auto& iteration : f.result.iterations) {
      iteration[0].machine_busy_ns = (2 * 17 + ms) * k_ms;
    }
  };
  others(166);
  const Report busy = at_speed(f.report(), 17, 17);
  EXPECT_EQ(busy.cause, "disturbed (+66.7 %): other programs had 83 % of the processors; run it "
                        "again when they are done");
  EXPECT_TRUE(busy.disturbed);
  EXPECT_FALSE(busy.within_tolerance);
  // Late within a tolerance of 100 %: its cause is looked for, and no slow place.
  EXPECT_THAT(f.report(1).cause, testing::StartsWith("disturbed (+66.7 %)"));
  others(20); // not enough to count
  EXPECT_THAT(at_speed(f.report(), 17, 17).cause, testing::StartsWith("the machine is slower"));
  EXPECT_FALSE(f.report().disturbed);
}

TEST(ReportOfARun, WhatIsLeftOfAMissIsSaidToBeUnexplained) {
  Fixture f; // 300 instead of 60 ms; 30 % of the processors less explain 60 / 0.7 = 85.7
  f.iterations(300, 19, 100);
  for (auto& iteration : f.result.iterations) {
    iteration[0].machine_busy_ns = (2 * 100 + 180) * k_ms;
  }
  EXPECT_THAT(f.report().cause,
              testing::HasSubstr("had 30 % of the processors, which explains +43 %; the rest is "
                                 "unexplained; run it again"));
  // Twice as long: 60 ms become 120; 300 ms are +150 %.
  Fixture slow;
  slow.iterations(300, 19, 290);
  const Report late = at_speed(slow.report(), 20, 20);
  EXPECT_THAT(late.cause, testing::AllOf(testing::StartsWith("the machine is slower"),
                                         testing::EndsWith("off, which is unexplained")));
  EXPECT_FALSE(late.within_tolerance);
}

TEST(ReportOfARun, OfTwoSpeedsTheOneThatWasPredictedIsNamed) { // 60 ms, and 120
  Fixture f;
  for (int i = 0; i < 3; ++i) {
    f.iterations(60, 19, 60);
  }
  for (int i = 0; i < 5; ++i) {
    f.iterations(120, 19, 120);
  }
  EXPECT_THAT(f.report().cause, testing::StartsWith("two speeds (+100.0 %): the fast 38 % of the "
                                                    "iterations took 60 ms, as predicted"));
  f.plan.prediction.lo_seconds = 0.119;
  f.plan.prediction.mid_seconds = 0.15;
  f.plan.prediction.hi_seconds = 0.16;
  EXPECT_THAT(f.report().cause, testing::Not(testing::StartsWith("two speeds"))) << "in the range";
  f.plan.prediction.lo_seconds = 0.149;
  EXPECT_THAT(f.report().cause, testing::Not(testing::StartsWith("two speeds"))) << "neither was";
}

TEST(ReportOfARun, TimesAreFromWhenAllBeginToTheLastCompletion) {
  Fixture f;
  f.iterations(66, 20, 60);
  const Report r = f.report();
  EXPECT_THAT(r.iteration_seconds, testing::Each(testing::DoubleNear(0.066, 1e-9)));
  EXPECT_NEAR(r.p50_seconds, 0.066, 1e-9);
  EXPECT_NEAR(r.error, 0.1, 1e-9);
  EXPECT_NEAR(r.goodput_over_bound, 30.0 / 66, 1e-9);
  EXPECT_TRUE(r.within_tolerance);
  EXPECT_FALSE(f.report(0.05).within_tolerance);
  Fixture faster;
  faster.iterations(54, 17, 50);
  EXPECT_NEAR(faster.report().error, -0.1, 1e-9);
  EXPECT_FALSE(faster.report(0.05).within_tolerance);
  // Rank 0 waited 5 ms for rank 1: that is not communication.
  EXPECT_NEAR(r.ranks[0].peer_wait_seconds, 0.005, 1e-9);
  EXPECT_NEAR(r.ranks[1].peer_wait_seconds, 0, 1e-9);
}

TEST(ReportOfARun, PassesThatWereShorterThanPlannedLowerTheBound) {
  // The bound of 30 ms counts on passes of 10 ms. They took 4: 24 ms are the least, of 25.
  Fixture f;
  f.plan.prediction.terms = {{"passes", 0.01}, {"exposed", 0.05}};
  f.iterations(25, 8, 20);
  f.result.passes = Seconds(0.01);
  for (auto& iteration : f.result.iterations) {
    iteration[0].compute_ns = 4 * k_ms;
  }
  EXPECT_NEAR(f.report().goodput_over_bound, 24.0 / 25, 1e-9);
  EXPECT_THAT(f.report().cause, testing::Not(testing::StartsWith("stale profile")));
  for (auto& iteration : f.result.iterations) {
    iteration[0].compute_ns = 12 * k_ms; // longer ones raise it not
  }
  EXPECT_NEAR(f.report().goodput_over_bound, 30.0 / 25, 1e-9);
  EXPECT_THAT(f.report().cause, testing::StartsWith("stale profile"));
}

TEST(ReportOfARun, CauseNamesTheTermThatMissed) {
  struct Case {
    std::int64_t total_ms, reduce_ms, cpu_ms, machine_ms;
    std::string cause;
  };
  for (const Case& c : std::vector<Case>{
           // 2 x 50 ms of sums on 2 processors: 50 instead of 19 ms; the rest 41 as predicted
           {91, 50, 91, 0, "reduction"},
           // sums as predicted, the rest 80 instead of 41 ms
           {99, 19, 99, 0, "transport"},
           // 40 ms too long, and the processors had nothing to do
           {100, 19, 30, 0, "waiting"},
           {20, 5, 20, 0, "stale profile"},
           // 2 x 100 ms of processors, we had 2 x 50, others 60
           {100, 19, 50, 160, "other programs had 30 % of the processors"},
           {61, 19, 60, 0, "within the noise"}}) {
    Fixture f;
    f.iterations(c.total_ms, c.reduce_ms, c.cpu_ms);
    for (auto& iteration : f.result.iterations) {
      iteration[0].machine_busy_ns = c.machine_ms * k_ms;
    }
    EXPECT_THAT(f.report().cause, testing::HasSubstr(c.cause));
  }
}

/// The fixture on two hosts: summing overlaps with the transport there.
struct TwoHosts : Fixture {
  TwoHosts() {
    result.hosts = {"here", "there"};
    for (PlanRank& r : plan.ranks) {
      r.port_bytes_per_second = 1e9;
    }
    plan.prediction.terms = {{"transport", 0.058}, {"reduction", 0}, {"fill", 0.002}};
  }
};

TEST(ReportOfARun, ASumThatTookLessThanHalfOfTheMissIsNotItsCause) {
  TwoHosts slow_link; // 240 ms too long, and 2 ms of sums
  slow_link.iterations(300, 2, 10);
  for (auto& iteration : slow_link.result.iterations) {
    for (RankSample& s : iteration) {
      s.wait_ns = 290 * k_ms; // each worked for 10 ms
    }
  }
  EXPECT_THAT(slow_link.report().cause,
              testing::AllOf(testing::StartsWith("transport (+400.0 %)"),
                             testing::HasSubstr("more slowly"), testing::HasSubstr("10 ms")));
  TwoHosts fast_link; // faster than predicted, though the sums cost more
  fast_link.iterations(50, 2, 10);
  EXPECT_THAT(fast_link.report().cause,
              testing::AllOf(testing::StartsWith("transport (-"), testing::HasSubstr("faster")));
  TwoHosts slow_sums; // 40 ms too long: 30 ms of sums
  slow_sums.iterations(100, 30, 60);
  EXPECT_THAT(slow_sums.report().cause, testing::StartsWith("reduction (+66.7 %)"));
}

TEST(ReportOfARun, APlanOfPortsOnOneMachineSaysSoAndDoesNotBlameTheProfile) {
  TwoHosts f;
  f.result.hosts = {"here", "here"};
  f.iterations(20, 2, 20); // below the bound
  const Report report = f.report();
  EXPECT_THAT(report.cause, testing::StartsWith("other links"));
  EXPECT_THAT(report.other_links, testing::HasSubstr("here all shared here"));
  EXPECT_FALSE(report.as_planned());
}

TEST(ReportOfARun, SomeMachinesOfThePlanOnOneHostAreNamedAndGiveNoVerdict) {
  TwoHosts f;
  f.plan.ranks.push_back(f.plan.ranks.back());
  f.result.hosts = {"here", "there", "there"};
  f.result.verification.resize(3);
  f.iterations(120, 2, 20); // twice what was predicted
  for (auto& iteration : f.result.iterations) {
    iteration.push_back(iteration.back());
  }
  const Report report = f.report();
  EXPECT_EQ(report.other_links,
            "it predicts ranks on machines of their own, here ranks 1-2 shared there");
  EXPECT_FALSE(report.as_planned());
}

TEST(ReportOfARun, AStageBetweenMachinesSaysWhyItHasNoTime) {
  TwoHosts f;
  f.iterations(60, 2, 10);
  const Report report = f.report();
  ASSERT_EQ(report.stages.front().name, "transport");
  EXPECT_FALSE(report.stages.front().measured_seconds.has_value());
  EXPECT_THAT(report.stages.front().how, testing::StartsWith("only in the total: "));
}

TEST(ReportOfARun, APlanFromAnotherMachinesProfileHasNoVerdict) {
  Fixture f;
  f.plan.measured_on = MeasuredMachine{"bigbox", "Xeon", 56};
  EXPECT_EQ(other_machine(f.plan, {"vm", "EPYC", 1}),
            "its profile is of 'bigbox' (Xeon, 56 cores), this is 'vm' (EPYC, 1 core)");
  EXPECT_NE(other_machine(f.plan, {"vm", "Xeon", 55}), ""); // fewer of them
  EXPECT_EQ(other_machine(f.plan, {"twin", "Xeon", 56}), "");
  f.iterations(600, 20, 60);
  EXPECT_TRUE(f.report().as_planned());
  f.options.other_machine = "its profile is of another";
  const Report report = f.report();
  EXPECT_FALSE(report.as_planned());
  EXPECT_EQ(report.other_links, "its profile is of another");
  EXPECT_THAT(report.cause, testing::StartsWith("another machine"));
  f.plan.measured_on.reset(); // by hand
  EXPECT_EQ(other_machine(f.plan, {"vm", "EPYC", 1}), "");
}

TEST(ReportOfARun, AnotherNumberOfRanksIsAnErrorThatSaysWhichToStart) {
  Plan plan;
  plan.ranks.resize(5);
  EXPECT_NO_THROW(check_rank_count(plan, "plan.json", 5));
  EXPECT_REFUSED(input,
                 "plan.json: the plan is for 5 ranks and the launcher started 4; plan for that "
                 "many or start 5 ranks",
                 check_rank_count(plan, "plan.json", 4));
}

TEST(ReportOfARun, AnotherTransportThanThePlansHasNoVerdict) {
  Fixture f;
  f.iterations(600, 20, 60); // ten times what was predicted
  f.plan.transport = f.options.transport = "shm";
  EXPECT_TRUE(f.report().as_planned());
  f.plan.transport = "unspecified"; // over any
  EXPECT_TRUE(f.report().as_planned());
  f.plan.transport = "verbs;ofi_rxm";
  const Report report = f.report();
  EXPECT_EQ(report.other_links, "it predicts verbs;ofi_rxm, this ran over shm");
  EXPECT_FALSE(report.as_planned());
}

TEST(ReportOfARun, PlacesInSeveralMachinesOnOneAreOtherLinks) {
  Fixture f;
  f.iterations(60, 20, 60);
  f.plan.ranks[0].machine_number = f.plan.ranks[1].machine_number = 0;
  EXPECT_TRUE(f.report().as_planned()); // two places of one machine
  f.plan.ranks[1].machine_number = 1;
  EXPECT_FALSE(f.report().as_planned());
}

TEST(ReportOfARun, StragglersThatWereAskedForAreTheCauseAndInTheContext) {
  Fixture f;
  f.options.stragglers = "1=2x";
  f.iterations(120, 19, 120);
  EXPECT_THAT(f.report().cause, testing::StartsWith("stragglers, as asked (+100.0 %): 1=2x"));
  EXPECT_THAT(f.report().context.at("stragglers"), testing::HasSubstr("1=2x"));
}

TEST(ReportOfARun, WithinTheToleranceACauseIsLookedForOutsideOfTheRange) {
  Fixture f;
  f.iterations(66, 20, 60); // 10 % more than predicted
  EXPECT_THAT(f.report(0.05).cause, testing::Not(testing::HasSubstr("tolerance")));
  EXPECT_THAT(f.report(0.15).cause, testing::Not(testing::HasSubstr("tolerance")));
  Fixture near;
  near.iterations(62, 20, 60); // 3.3 %
  EXPECT_THAT(near.report(0.15).cause, testing::StartsWith("within the tolerance (+3.3 %)"));
}

TEST(ReportOfARun, AWideRangeExcusesNothing) {
  Fixture f;
  f.iterations(72, 19, 60); // predicted: 60
  f.plan.prediction.lo_seconds = 0.05;
  f.plan.prediction.hi_seconds = 0.08;
  EXPECT_THAT(f.report(0.15).cause, testing::StartsWith("the profile is too noisy to judge"));
  EXPECT_THAT(f.report(0.25).cause, testing::StartsWith("within the tolerance"));
}

TEST(ReportOfARun, AnEmulationWhoseWritesWereMostlyLateHasNoVerdict) {
  Fixture f;
  f.plan.profile = {"links", "sha256:1"};
  f.iterations(120, 20, 60); // twice the prediction
  const auto cause = [&](double tolerance, const DocumentLink& links, std::uint64_t late) {
    Report report = f.report(tolerance);
    mark_emulated(report, links, {100, late, 0.01});
    EXPECT_EQ(report.as_planned(), !report.cause.starts_with("this machine"));
    return report.cause;
  };
  EXPECT_THAT(cause(0.15, f.plan.profile, 98),
              testing::StartsWith("this machine (+100.0 %): 98 of 100 writes"));
  for (const std::string& other :
       {cause(0.15, f.plan.profile, 50), cause(2, f.plan.profile, 98),
        cause(0.15, {"others", "sha256:2"}, 98)}) { // which the prediction is not for
    EXPECT_THAT(other, testing::Not(testing::StartsWith("this machine")));
  }
}

TEST(ReportOfARun, NoTimePredictedForTrafficIsNeverWithinTheTolerance) {
  Fixture f;
  f.plan.prediction = {};
  f.iterations(60, 10, 30);
  EXPECT_FALSE(f.report().within_tolerance);
  for (PlanRank& rank : f.plan.ranks) {
    rank.egress_bytes = rank.ingress_bytes = 0;
  }
  EXPECT_TRUE(f.report().within_tolerance); // one worker: nothing moves, nothing was predicted
}

TEST(ReportOfARun, WrongSumsAreNotOk) {
  Fixture f;
  f.iterations(60, 19, 60);
  f.result.verification[1] = {100, 3, "gradient byte 8 (fp32): expected 1, got 2", 0};
  const Report r = f.report();
  EXPECT_FALSE(r.verification.ok);
  EXPECT_EQ(r.verification.wrong_elements, 3U);
  EXPECT_THAT(r.verification.first_error, testing::HasSubstr("rank 1, gradient byte 8"));
  EXPECT_THAT(trouble_of(r), test::Says("3 elements"));
}

TEST(ReportOfARun, ACheckpointThatCouldNotBeSavedIsTrouble) {
  Fixture f;
  f.iterations(60, 19, 60);
  f.options.checkpoints.save_folder = "saved";
  f.result.kinds.resize(f.result.iterations.size());
  EXPECT_EQ(trouble_of(f.report()), "");
  f.result.checkpoints.failed = 1;
  f.result.checkpoints.first_failure = "rank 1: No space left on device";
  EXPECT_THAT(trouble_of(f.report()), test::Says("could not be saved"));
}

TEST(MeasuredGains, CompareTheLaterHalfBeforeAChangeWithAllAfter) {
  ReprofilingReport r;
  r.every_iterations = 4;
  r.pauses.resize(4); // after 4: nothing; after 8 and 12: changes; after 16: nothing
  r.pauses[1].replan.emplace();
  r.pauses[2].replan.emplace();
  // Of the last four of the first plan the later two: 3 and 5. The second plan made four, 1 2 2 3,
  // whose median is 2: 1 - 2 / 4. Of these the later two: 2 and 3; the third made none.
  add_measured_gains(r, {{9, 9, 9, 9, 1, 1, 3, 5}, {1, 2, 2, 3}, {}});
  EXPECT_FALSE(r.pauses[0].replan);
  EXPECT_DOUBLE_EQ(*r.pauses[1].replan->before_seconds, 4);
  EXPECT_DOUBLE_EQ(*r.pauses[1].replan->after_seconds, 2);
  EXPECT_DOUBLE_EQ(*r.pauses[1].replan->gain, 0.5);
  EXPECT_THAT(r.pauses[1].replan->iteration_seconds, testing::ElementsAre(1, 2, 2, 3));
  EXPECT_DOUBLE_EQ(*r.pauses[2].replan->before_seconds, 2.5);
  EXPECT_FALSE(r.pauses[2].replan->after_seconds);
  EXPECT_FALSE(r.pauses[2].replan->gain);
}

} // namespace
} // namespace reckon
