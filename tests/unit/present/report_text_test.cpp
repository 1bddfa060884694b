// SPDX-License-Identifier: Apache-2.0
#include "present/document_text.hpp"
#include "support/machine_documents.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

TEST(ReportTable, ShowsPredictedMeasuredErrorAndCause) {
  // 138.8 / 135.1 is 2.7 % more; 14.6 / 4.2 is 3.5 times; 156.75 / 142.4 is 10.1 % more.
  EXPECT_THAT(
      report_table(test::machine_report(), Style{}),
      HasSubstr("           predicted  measured   error  cause\n"
                "total       142.4 ms  156.8 ms   +10 %  reduction: took 14.6 ms where 4.2 ms were "
                "predicted, the lanes of ranks 8 and 9 share two cores\n"
                "transport   135.1 ms  138.8 ms  +2.7 %  time with writes under way\n"
                "reduction   4.200 ms  14.60 ms   x 3.5  summing, not hidden behind transport\n"
                "fill        3.100 ms         -          not told apart from transport\n\n"));
}

TEST(ReportTable, AnErrorBeyondTheToleranceIsRedInBothDirections) {
  Report r = test::machine_report();
  r.tolerance = 0.15;
  const auto total = [&](double error) {
    r.error = error;
    return report_table(r, {Colors::ansi256, 0});
  };
  EXPECT_THAT(total(0.16), ContainsRegex("total[^\n]*\x1b\\[31m"));
  EXPECT_THAT(total(-0.16), ContainsRegex("total[^\n]*\x1b\\[31m"));
  EXPECT_THAT(total(-0.14), Not(ContainsRegex("total[^\n]*\x1b\\[31m")));
}

TEST(ReportTable, StagesBelowATwentiethOfATenthAreOneRowWithoutAFactor) {
  Report r = test::machine_report();
  // 2 % of 142.4 ms is 2.848 ms, of 156.8 ms 3.136 ms.
  r.stages = {{"exchange", 0.140, 0.130, "a"}, {"start", 1e-6, 0.003, "b"},
              {"fill", 0.0028, 0.0001, "c"},   {"sums", 0.0029, 0.0001, "d"},
              {"waiting", 0.0001, 0.040, "e"}, {"total", 0.1424, 0.1568, "f"}};
  EXPECT_THAT(
      report_table(r, Style{}),
      ContainsRegex("total .*\n"
                    "exchange +140.0 ms +130.0 ms +-7.1 % +a\n"
                    "sums +2.900 ms +100.0 us +x 0.034 +d\n"
                    "waiting +100.0 us +40.00 ms +e\n"
                    "other +2.801 ms +3.100 ms +start, fill: below 2.0 % of the total\n\n"));
}

TEST(ReportTable, ARangeThatExcusesAnythingSaysSo) {
  Report r = test::machine_report();
  const double mid = r.prediction.mid_seconds;
  r.prediction.lo_seconds = 0.86 * mid;
  r.prediction.hi_seconds = 1.14 * mid;
  EXPECT_THAT(report_table(r, Style{}), Not(HasSubstr("too wide")));
  r.prediction.hi_seconds = 1.16 * mid;
  EXPECT_THAT(report_table(r, Style{}), HasSubstr("too wide to judge by"));
}

TEST(ReportTable, SaysWhetherTheMedianIsInThePredictedRange) {
  Report r = test::machine_report();
  r.prediction.lo_seconds = 0.100;
  r.prediction.hi_seconds = 0.150;
  const auto says = [&](double p50_seconds) {
    r.p50_seconds = p50_seconds;
    return report_table(r, Style{});
  };
  EXPECT_THAT(says(0.165), HasSubstr("100.0 ms to 150.0 ms; the median is 10 % above that range"));
  EXPECT_THAT(says(0.095), HasSubstr("100.0 ms to 150.0 ms; the median is 5.0 % below that range"));
  EXPECT_THAT(says(0.150), Not(HasSubstr("that range")));
  r.other_links = "it predicts tcp, this ran over shm";
  EXPECT_THAT(says(0.165), Not(HasSubstr("that range")));
}

TEST(ReportTable, SaysWhatMovedTheBytes) {
  Report r = test::machine_report();
  r.transport = "tcp;ofi_rxm";
  EXPECT_THAT(report_table(r, Style{}), ContainsRegex("moved by +tcp;ofi_rxm\n"));
  r.context["inside_machines"] = "shm";
  EXPECT_THAT(report_table(r, Style{}),
              ContainsRegex("moved by +shm inside machines, tcp;ofi_rxm between them\n"));
}

TEST(ReportTable, SaysThatLinksWereEmulatedAndHowWell) {
  Report r = test::machine_report();
  EXPECT_THAT(report_table(r, Style{}), Not(HasSubstr("emulated")));
  r.emulation = Emulation{{"coarse-v100", ""}, 1000, 3, 0.002};
  EXPECT_THAT(report_table(r, Style{}), HasSubstr("3 of 1000 writes took longer here than there"));
  EXPECT_THAT(report_table(r, Style{}), HasSubstr("the links of coarse-v100, not this machine's"));
  r.other_links = "this machine is slower";
  EXPECT_THAT(report_table(r, Style{}), HasSubstr("none: this machine is slower; emulate slower"));
}

TEST(ReportTable, HasATotalEvenWhenNoStageIsCalledSo) {
  Report r = test::machine_report();
  r.stages.clear();
  EXPECT_THAT(report_table(r, Style{}), HasSubstr("total   142.4 ms  156.8 ms  +10 %"));
}

TEST(ReportTable, SaysWhenSumsAreWrongAndWhere) {
  Report r = test::machine_report();
  r.verification = {false, 1048576, 3, "rank 1, part 2, offset 8: expected 12, got 9"};
  r.within_tolerance = false;
  const std::string text = report_table(r, Style{});
  EXPECT_THAT(text, HasSubstr("wrong: 3 elements of 1 MiB of results; first: rank 1, part 2"));
  EXPECT_THAT(text, HasSubstr("outside the tolerance of 15 %"));
  EXPECT_THAT(text, Not(HasSubstr("correct")));
}

TEST(ReportTable, SaysThatTheProfileIsStaleWhenTheBoundWasBeaten) {
  Report r = test::machine_report();
  r.goodput_over_bound = 1.2;
  EXPECT_THAT(report_table(r, Style{}), HasSubstr("stale"));
  r.other_links = "it predicts tcp, this ran over shm";
  EXPECT_THAT(report_table(r, Style{}), Not(HasSubstr("stale")));
}

TEST(ReportTable, SaysWhatAShareOfTheBoundIsOf) {
  Report r = test::machine_report();
  r.goodput_over_bound = 0.5;
  r.stages.push_back({"passes", 0.01, 0.0099, ""});
  EXPECT_THAT(report_table(r, Style{}), HasSubstr("goodput is 50 % of it"));
  r.stages.back().measured_seconds = 0.009;
  EXPECT_THAT(report_table(r, Style{}), HasSubstr("goodput is 50 % of that with passes"));
  r.prediction.bound_seconds = 0; // a share of nothing says nothing
  EXPECT_THAT(report_table(r, Style{}), AllOf(HasSubstr("none: "), Not(HasSubstr("goodput"))));
}

TEST(ReportTable, HoldsNoPlanOfOtherLinksAgainstWhatWasMeasured) {
  Report r = test::machine_report();
  r.other_links = "it predicts tcp, this ran over shm";
  const std::string text = report_table(r, Style{});
  EXPECT_THAT(text, HasSubstr("none: the plan was made for other links (it predicts tcp"));
  EXPECT_THAT(text, Not(HasSubstr("+10 %")));
  EXPECT_THAT(text, Not(HasSubstr("the tolerance of")));
}

TEST(ReportText, ShowsTheSlowestOfManyRanks) {
  Report r = test::machine_report();
  r.ranks.resize(100, r.ranks[0]);
  r.ranks[77].total_seconds = 9;
  const std::string text = render(r, Style{});
  EXPECT_THAT(text, HasSubstr("the slowest 16 of 100"));
  EXPECT_THAT(text, HasSubstr("\n    77  alpha"));
}

TEST(ReportText, DisarmsTextOfTheDocument) {
  Report r = test::machine_report();
  r.kind = r.strategy = r.transport = r.cause = r.prediction.bound_by = "\x1b";
  r.plan.name = r.profile.name = r.workload.name = "\x1b";
  r.context["\x1b"] = "\x1b";
  r.stages[0].name = r.stages[0].how = "\x1b";
  r.ranks[0].host = "\x1b";
  r.verification = {false, 1, 1, "\x1b"};
  EXPECT_THAT(render(r, Style{}), Not(HasSubstr("\x1b")));
}

} // namespace
} // namespace reckon
