// SPDX-License-Identifier: Apache-2.0
#include "present/comparison_text.hpp"

#include "support/example_documents.hpp"
#include "support/machine_documents.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

TEST(ComparisonText, SaysOnOneLineThatNothingDiffers) {
  const Plan p = test::machine_plan();
  const std::string text = render(compare(p, p), "a.json", "b.json", Style{});
  EXPECT_THAT(text, MatchesRegex("plans a.json and b.json: same in [0-9]+ quantities\n"));
}

TEST(ComparisonText, PutsEqualChangesOfRanksOnOneLine) {
  const Plan before = test::machine_plan();
  Plan after = before;
  for (const std::size_t rank : {0U, 1U, 2U, 5U}) {
    after.ranks[rank].lanes = 3;
  }
  after.ranks[9].lanes = 8;
  const std::string text = render(compare(before, after), "a", "b", Style{});
  EXPECT_THAT(text, test::Says("5: lanes"));
}

TEST(ComparisonText, SaysWhatMovedWhere) {
  const Plan before = test::machine_plan();
  Plan after = before;
  after.parts.server[0] = 3; // was 0
  EXPECT_THAT(render(compare(before, after), "a", "b", Style{}), test::Says("1 piece"));
}

TEST(ComparisonText, SumsManyMovesUpAndNamesTheLargest) {
  const Plan before = test::machine_plan(); // parts of 4 MiB, slot i of 124 is rank i % 8 at first
  Plan after = before;
  after.parts.server[8] = 3; // two from rank 0 to 3, one each from 1, 2, 4, 5, 6, 7 to 3
  for (const std::size_t i : {0U, 1U, 2U, 4U, 5U, 6U, 7U}) {
    after.parts.server[i] = 3;
  }
  const std::string text = render(compare(before, after), "a", "b", Style{});
  EXPECT_THAT(text, test::Says("summed")); // 8 parts of 4 MiB
  EXPECT_THAT(text, test::Says("8 pieces"));
  EXPECT_THAT(text, Not(HasSubstr("rank 7"))); // the sixth and seventh
}

TEST(ComparisonText, CutsLongGroupsAndSaysSo) {
  const Plan before = test::machine_plan();
  Plan after = before;
  for (std::size_t i = 0; i < 40; ++i) {
    after.quantities.push_back({"extra_" + std::to_string(i), 1, "", {}});
  }
  EXPECT_THAT(render(compare(before, after), "a", "b", Style{}), test::Says("lists"));
  EXPECT_THAT(render(compare(before, after), "a", "b", Style{}, true), HasSubstr("extra_39"));
}

TEST(ComparisonText, ShowsTheWorstCellsFirst) {
  const Profile before = test::machine_profile();
  Profile after = before;
  double factor = 0.8;
  for (Cell& c : after.cells) {
    if (c.key.test == "reduce_sum") {
      for (double& s : c.samples) {
        s *= factor;
      }
      summarize_cell(c);
      factor -= 0.05;
    }
  }
  // 12 cells with factors 0.8, 0.75, ... 0.25.
  const std::string text = render(compare(before, after), "a", "b", Style{});
  EXPECT_LT(text.find("x 0.25"), text.find("-20 %"));
  EXPECT_THAT(text, test::Says("12 differences"));
  EXPECT_THAT(text, HasSubstr("\nreduce_sum\n"));
  EXPECT_THAT(text, HasSubstr("p < 0.001"));
}

TEST(ComparisonText, ShortensDigestsOfCauses) {
  const Plan before = test::machine_plan();
  Plan after = before;
  after.profile.digest = "sha256:" + std::string(64, 'e');
  const std::string text = render(compare(before, after), "a", "b", Style{});
  EXPECT_THAT(text, HasSubstr("changed inputs"));
  EXPECT_THAT(text, HasSubstr("sha256:eeeeeeeeeeee\n"));
}

TEST(ComparisonText, ListsWhatCouldNotBeDecided) {
  Profile before = test::machine_profile();
  before.cells.resize(1);
  Profile after = before;
  for (Profile* p : {&before, &after}) {
    p->cells[0].samples.resize(2);
  }
  for (double& s : after.cells[0].samples) {
    s *= 2;
  }
  summarize_cell(before.cells[0]);
  summarize_cell(after.cells[0]);
  const std::string text = render(compare(before, after), "a", "b", Style{});
  EXPECT_THAT(text, HasSubstr("same in"));
  EXPECT_THAT(text, HasSubstr("1 undecided"));
  EXPECT_THAT(text, HasSubstr("too few samples"));
}

TEST(ComparisonText, SaysInTheFirstLineWhatIsUndecided) {
  Report before = test::example_report();
  before.simulation.reset();
  before.iteration_seconds = {0.033, 0.034, 0.033};
  before.p50_seconds = 0.033;
  Report after = before;
  after.iteration_seconds = {0.021, 0.022, 0.021};
  after.p50_seconds = 0.021;
  const auto first_line = [&] {
    const std::string text = render(compare(before, after), "a", "b", Style{});
    return text.substr(0, text.find('\n'));
  };
  EXPECT_THAT(first_line(), MatchesRegex("reports a and b: same in .*, 1 undecided: measured time "
                                         "33.00 ms -> 21.00 ms, -36 %"));
  after.transport = "shm";
  EXPECT_THAT(first_line(), MatchesRegex("reports a and b: different: measured time 33.00 ms -> "
                                         "21.00 ms, -36 %, undecided"));
}

TEST(ComparisonText, ShowsOfLongTextsWhereTheyBegin) {
  Plan before = test::machine_plan();
  before.options["note"] = "begins so, " + std::string(300, 'x');
  Plan after = before;
  after.options["note"] = "begins otherwise, " + std::string(300, 'y');
  const auto text = [&] { return render(compare(before, after), "a", "b", Style{}); };
  EXPECT_THAT(text(), AllOf(HasSubstr("begins so, xxx"), HasSubstr("...  ->  begins otherwise, yy"),
                            Not(HasSubstr(std::string(100, 'x')))));
  after.options["note"] = before.options["note"] + "!";
  EXPECT_THAT(text(), HasSubstr("a text  ->  another\n"));
}

TEST(ComparisonText, SaysWhatItComesToFirst) {
  const Plan before = test::machine_plan();
  Plan after = before;
  after.prediction.mid_seconds *= 1.5;
  after.window_parts += 1;
  const auto text = [&](bool only_worse) {
    return render(compare(before, after, {.only_worse = only_worse}), "a", "b", Style{});
  };
  EXPECT_THAT(text(false), MatchesRegex("plans a and b: different: predicted time .* -> .*, "
                                        "\\+50 %\n2 differences: 1 worse, 0 better, 1 neither\n"
                                        "(.|\n)*"));
  // The counts are the same whatever counts.
  EXPECT_THAT(text(true), test::Says("2 differences"));
  after.prediction.mid_seconds = before.prediction.mid_seconds;
  EXPECT_THAT(text(true), test::Says("1 difference"));
}

TEST(ComparisonText, NamesTheMachineTheCauseAndHowMuchFollows) {
  Comparison c;
  c.kind = "profile";
  const auto cell = [&](const char* test, std::vector<std::string> places, double after) {
    Difference d;
    d.kind = "bandwidth";
    d.group = test;
    d.where = test + (" " + places.front()) + places.back();
    d.places = std::move(places);
    d.before = {"", 100e6, "bytes_per_second"};
    d.after = {"", after, "bytes_per_second"};
    d.change = after / 100e6 - 1;
    d.effect = Effect::worse;
    return d;
  };
  c.differences.push_back(cell("port_bandwidth", {"w2"}, 40e6));
  for (const char* peer : {"w0", "w1"}) {
    for (const auto& places : {std::vector<std::string>{"w2", peer}, {peer, "w2"}}) {
      c.differences.push_back(cell("pair_bandwidth", places, 41e6));
      c.differences.back().follows_from = c.differences[0].where;
    }
  }
  c.differences.push_back(cell("fan_in_bandwidth", {"w2"}, 41e6));
  c.differences.back().follows_from = c.differences[0].where;
  EXPECT_THAT(render(c, "a", "b", Style{}), test::Says("different: w2"));
  c.only_before = {"host_memcpy m0 8 B", "host_memcpy m0 16 B", "reduce_sum m0"};
  EXPECT_THAT(render(c, "a", "b", Style{}), test::Says("host_memcpy 2"));
  c.largest_within = cell("stream_copy", {"m0"}, 86e6);
  c.largest_within->note = "within the tolerance of 15 %";
  EXPECT_THAT(render(c, "a", "b", Style{}), test::Says("stream_copy m0m0"));
}

TEST(ComparisonText, MarksWorseRedAndDisarmsText) {
  const Plan before = test::machine_plan();
  Plan after = before;
  after.prediction.mid_seconds *= 1.5;
  after.strategy = "\x1b[2J";
  const Style color{Colors::ansi256, 0};
  const std::string text = render(compare(before, after), "\x1b[2J", "b", color);
  EXPECT_THAT(text, HasSubstr("\x1b[31m+50 % worse\x1b[0m"));
  EXPECT_THAT(render(compare(before, after), "a", "b", Style{}), HasSubstr("+50 % worse\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b[2J")));
}

} // namespace
} // namespace reckon
