// SPDX-License-Identifier: Apache-2.0
#include "page/figures.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <regex>

namespace reckon {
namespace {

using namespace testing;

std::vector<std::string> all(const std::string& text, const std::string& pattern) {
  std::vector<std::string> out;
  const std::regex regex(pattern);
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) {
    out.push_back((*i)[1]);
  }
  return out;
}

/// Rates or times between places, all pairs.
Matrix matrix(std::size_t places, const std::function<double(std::size_t, std::size_t)>& value) {
  Matrix m;
  m.title = "pair_bandwidth";
  m.unit = "GB/s";
  for (std::size_t i = 0; i < places; ++i) {
    m.rows.push_back("w" + std::to_string(i));
    auto& row = m.cells.emplace_back();
    for (std::size_t j = 0; j < places; ++j) {
      row.push_back({value(i, j), "", false});
    }
  }
  m.columns = m.rows;
  return m;
}

TEST(HeatMap, OfEqualValuesHasOneColour) {
  // 0.1 % apart: the colours begin at nothing, so they round to few shades of the best.
  const std::string html = heat_map(
      matrix(3, [](std::size_t i, std::size_t j) { return 10 + 0.001 * double(i * 3 + j); }), {});
  for (const std::string& red : all(html, "background:#(..)....;")) {
    EXPECT_GE(std::stoi(red, nullptr, 16), 250); // of heat_color(1): 253
  }
  EXPECT_THAT(all(html, "<small>(.*?)</small>"), Each(Eq("100 %")));
}

TEST(HeatMap, MeasuresRatesByTheBestOrByTheirCeiling) {
  Matrix m = matrix(2, [](std::size_t i, std::size_t j) { return i == j ? 10.0 : 4.0; });
  EXPECT_THAT(all(heat_map(m, {}), "<small>(.*?)</small>"),
              ElementsAre("100 %", "40 %", "40 %", "100 %"));
  for (auto& row : m.cells) {
    for (MatrixCell& cell : row) {
      cell.ceiling_share = *cell.value / 16; // 62.5 % and 25 %
      cell.ceiling = "PCIe 3.0 x16";
    }
  }
  EXPECT_THAT(all(heat_map(m, {}), "<small>(.*?)</small>"),
              ElementsAre("62 %", "25 %", "25 %", "62 %"));
  EXPECT_THAT(heat_map(m, {}), HasSubstr("100 % of PCIe 3.0 x16"));
  EXPECT_THAT(heat_map(m, {}), HasSubstr("title=\"w0 -&gt; w1, ceiling: PCIe 3.0 x16\""));
  m.cells[0][0].ceiling = "another";
  EXPECT_THAT(heat_map(m, {}), HasSubstr("100 % of each one&#39;s ceiling"));
}

TEST(HeatMap, OfTimesIsTheOtherWayRound) {
  Matrix m = matrix(2, [](std::size_t i, std::size_t j) { return i == j ? 2.0 : 8.0; });
  m.higher_is_better = false;
  EXPECT_THAT(all(heat_map(m, {}), "<small>(.*?)</small>"),
              ElementsAre("100 %", "25 %", "25 %", "100 %"));
}

TEST(HeatMap, MarksOddPlacesWhereTheyAreSlow) {
  const Matrix m = matrix(3, [](std::size_t i, std::size_t) { return i == 1 ? 4.0 : 10.0; });
  // All three of row 1; column 1 is fast in the other rows.
  EXPECT_THAT(all(heat_map(m, {"w1"}), "class=\"odd\"[^>]*title=\"(.*?)\""),
              ElementsAre("w1 -&gt; w0", "w1 -&gt; w1", "w1 -&gt; w2"));
  EXPECT_THAT(all(heat_map(m, {"w1 -> w2"}), "class=\"odd\"[^>]*title=\"(.*?)\""),
              ElementsAre("w1 -&gt; w2"));
}

TEST(HeatMap, OfManyPlacesJoinsEqualNeighbours) {
  Matrix m =
      matrix(100, [](std::size_t i, std::size_t j) { return i == 7 || j == 7 ? 5.0 : 10.0; });
  for (std::size_t i = 0; i < 100; ++i) {
    m.cells[i][i] = {std::nullopt, "N/A", false};
  }
  // A row has the slow square and three stretches around it and the gap at the diagonal; two where
  // the gap is at an edge or beside the slow square (rows 0, 6, 8 and 99). Row 7 is two slow ones.
  const std::string html = heat_map(m, {});
  EXPECT_EQ(all(html, "(<rect )").size(), 95U * 4 + 4 * 3 + 2);
  EXPECT_THAT(html, HasSubstr("<title>w0 -&gt; w8 to w99: 10.00 to 10.00 GB/s</title>"));
  // At most 16 names a side.
  EXPECT_LE(all(html, "(<text )").size(), 32U);
}

TEST(BarTable, HasBarsAsLongAsTheirPart) {
  const std::string html =
      bar_table({"x", "y"}, {{"a<b", false, {{0.25, ""}, {7, "second"}}, {"1 s"}}, {"c", true}});
  EXPECT_THAT(all(html, "width:(.*?)%"), ElementsAre("25.0", "100.0"));
  EXPECT_THAT(html, AllOf(HasSubstr("<td>a&lt;b</td>"), HasSubstr("<td><b>c</b></td>")));
  EXPECT_THAT(html,
              HasSubstr("<th>x</th><th class=\"bars\"></th><th class=\"number\">y</th></tr>"));
  EXPECT_THAT(html, Not(HasSubstr("sentence")));
  EXPECT_EQ(bar_table({"x", "y"}, {}), "");
}

TEST(BarTable, HasRemarksUnderTheLastHead) {
  EXPECT_THAT(bar_table({"x", "y", "z"}, {{"a", false, {}, {"1 s"}, "<i>why</i>"}}),
              AllOf(HasSubstr("<th class=\"number\">y</th><th class=\"sentence\">z</th>"),
                    HasSubstr("<td class=\"sentence\"><i>why</i></td>")));
}

/// One lane of one rank with two writes and a sum.
Schedule schedule_of_three() {
  Schedule schedule;
  schedule.worker = {true};
  LaneProgram lane;
  lane.append_write(0, 0, 1, {}, {}, 100, {});
  lane.append_write(1, 0, 2, {}, {}, 100, {});
  Op sum;
  sum.kind = OpKind::reduce;
  sum.bytes = 100;
  lane.append_reduce(sum, {}, {});
  schedule.ranks.emplace_back().lanes.push_back(lane);
  return schedule;
}

TEST(TimelineChart, PutsAllTimelinesOnOneAxis) {
  // The axis is 840 wide for 2 s: the second timeline, of 1 s, ends in its middle.
  const std::vector<NamedTimeline> timelines{
      {"predicted", {{{{0, 500'000'000}, {1'000'000'000, 2'000'000'000}, {0, 0}}}}},
      {"measured",
       {{{{7'000'000'000, 7'500'000'000},
          {7'500'000'000, 8'000'000'000},
          {7'250'000'000, 7'500'000'000}}}}}};
  const std::string html = timeline_chart(schedule_of_three(), timelines);
  EXPECT_THAT(all(html, "<rect class=\"f0\" x=\"(.*?)\""), ElementsAre("110.0", "530.0", "110.0"));
  // Two writes that follow each other at once are one.
  EXPECT_THAT(all(html, "<rect class=\"f0\"[^>]*width=\"(.*?)\""),
              ElementsAre("210.0", "420.0", "420.0"));
  EXPECT_THAT(all(html, "<rect class=\"f1\" x=\"(.*?)\""), ElementsAre("110.0", "215.0"));
  EXPECT_THAT(html, HasSubstr("rank 0 lane 0"));
}

TEST(IterationsChart, IsLogarithmicWhereOneIsFarOff) {
  Report report;
  report.prediction = {.bound_seconds = 1,
                       .bound_by = "",
                       .lo_seconds = 1,
                       .mid_seconds = 1.1,
                       .hi_seconds = 1.2,
                       .terms = {},
                       .relief = ""};
  report.iteration_seconds = {1.5, 1.5, 1.5};
  report.p50_seconds = report.min_seconds = 1.5;
  EXPECT_THAT(iterations_chart(report), HasSubstr(">0</text>"));
  report.iteration_seconds.back() = 80;
  EXPECT_THAT(iterations_chart(report), Not(HasSubstr(">0</text>")));
  report.iteration_seconds = {1.5};
  EXPECT_EQ(iterations_chart(report), ""); // one is no course
}

} // namespace
} // namespace reckon
