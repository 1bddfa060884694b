// SPDX-License-Identifier: Apache-2.0
#include "present/matrix.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

MatrixCell value(double v, bool noisy = false) {
  return {v, "", noisy};
}
MatrixCell text(std::string t) {
  return {std::nullopt, std::move(t), false};
}

Matrix example() {
  Matrix m;
  m.title = "numa_to_numa_copy_cpu";
  m.setting = "4 threads";
  m.unit = "GB/s";
  m.rows = {"m0/numa0", "m0/numa1"};
  m.columns = {"m0/numa0", "m0/numa1"};
  m.cells = {{value(12.5), value(7.25, true)}, {text("failed"), value(12.125)}};
  return m;
}

TEST(Matrix, ShowsRowsAsSourcesAndSaysWherePeaksAre) {
  // Sum 12.5 + 7.25 + 12.125 = 31.875.
  EXPECT_EQ(
      render(example(), {}),
      "numa_to_numa_copy_cpu: row = source, column = destination (GB/s); ids m0/numa*; 4 threads\n"
      "        0      1\n"
      "0   12.50  ~7.25\n"
      "1  failed  12.12\n"
      "sum 31.88, min 7.25 (0 -> 1), max 12.50 (0 -> 0) GB/s\n");
}

TEST(Matrix, HasNoSumOfLatencies) {
  Matrix m = example();
  m.higher_is_better = false;
  m.unit = "ns";
  m.decimals = 0;
  EXPECT_THAT(render(m, {}), test::Says("min 7"));
}

TEST(Matrix, PaintsTheBestLightestWhateverTheUnit) {
  const Style full{Colors::truecolor, 0};
  const std::string light = "48;2;253;231;37m"; // heat_color(1)
  EXPECT_THAT(render(example(), full), HasSubstr(light + " 12.50"));
  Matrix m = example();
  m.higher_is_better = false;
  EXPECT_THAT(render(m, full), HasSubstr(light + "~7.25"));
  EXPECT_THAT(render(m, full), Not(HasSubstr(light + " 12.50")));
}

// 10.00 and 9.99 differ by a thousandth: the scale reaches from 8 to 10, where 9.99 stands at
// 0.995. From 5 to 10 the worst value is the scale's end. Latencies of 100 and 101 ns: from 125 to
// 100, 0.96.
TEST(Matrix, PaintsWhatIsNearlyEqualAlike) {
  Matrix m = example();
  m.cells = {{value(10), value(9.99)}, {value(9.99), value(10)}};
  EXPECT_DOUBLE_EQ(color_scale_of(m).worst, 8);
  EXPECT_NEAR(color_scale_of(m).goodness(9.99), 0.995, 1e-12);
  m.cells[1][0] = value(5);
  EXPECT_DOUBLE_EQ(color_scale_of(m).goodness(5), 0);
  EXPECT_DOUBLE_EQ(color_scale_of(m).goodness(10), 1);
  m.cells = {{value(100), value(101)}, {value(100), value(100)}};
  m.higher_is_better = false;
  EXPECT_DOUBLE_EQ(color_scale_of(m).goodness(100), 1);
  EXPECT_DOUBLE_EQ(color_scale_of(m).goodness(101), 0.96);
  m.cells = {{value(0), value(0)}, {value(0), value(0)}};
  EXPECT_DOUBLE_EQ(color_scale_of(m).goodness(0), 1);
}

TEST(Matrix, WritesWholeIdsWhenTheyAreNotNumbered) {
  Matrix m = example();
  m.rows = {"gpu", "m0/numa1"};
  m.columns = m.rows;
  EXPECT_EQ(common_beginning(m.rows), "");
  EXPECT_THAT(render(m, {}), HasSubstr("(gpu -> m0/numa1)"));
  EXPECT_THAT(render(m, {}), Not(HasSubstr("ids")));
}

TEST(Matrix, DoesNotTakeDigitsIntoTheCommonBeginning) {
  // All begin with "m0/core1", but the numbers are 1, 10 and 11.
  EXPECT_EQ(common_beginning({"m0/core1", "m0/core10", "m0/core11"}), "m0/core");
  EXPECT_EQ(common_beginning({"m0/core1"}), "m0/core");
  EXPECT_EQ(common_beginning({"m0/core1", "m0/core"}), "");
  EXPECT_EQ(common_beginning({}), "");
}

TEST(Matrix, ShowsColoursAloneWhenNumbersDoNotFit) {
  Matrix m;
  m.title = "x";
  m.unit = "ns";
  m.higher_is_better = false;
  m.decimals = 0;
  for (int i = 0; i < 30; ++i) {
    m.rows.push_back("m0/core" + std::to_string(i));
  }
  m.columns = m.rows;
  m.cells.assign(30, std::vector<MatrixCell>(30, value(100)));
  m.cells[0][0] = value(50);
  // 30 columns of 3 digits and 2 blanks need 150; 30 of two blanks need 60.
  const std::string narrow = render(m, {Colors::ansi256, 80});
  EXPECT_THAT(narrow, HasSubstr("  \x1b[0m"));
  EXPECT_THAT(narrow, HasSubstr("100 \x1b["));     // the scale: worst ...
  EXPECT_THAT(narrow, HasSubstr("\x1b[0m 50 ns")); // ... to best
  EXPECT_THAT(narrow, Not(HasSubstr("m100")));     // no number in a cell
  EXPECT_THAT(render(m, {Colors::ansi256, 160}), HasSubstr("m100"));
  // Without colours the numbers stay, in blocks of columns.
  EXPECT_THAT(render(m, {Colors::none, 80}), HasSubstr("\n\n"));
}

TEST(Matrix, HoldsWithoutAnyValue) {
  Matrix m = example();
  m.cells = {{text("N/A"), text("N/A")}, {text("N/A"), text("N/A")}};
  EXPECT_THAT(render(m, {Colors::truecolor, 10}), Not(HasSubstr("inf")));
}

} // namespace
} // namespace reckon
