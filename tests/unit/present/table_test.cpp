// SPDX-License-Identifier: Apache-2.0
#include "present/table.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

const Style k_plain;

Style wide(int columns) {
  return {Colors::none, columns};
}

TEST(Table, AlignsTextLeftAndNumbersRightWithoutTrailingBlanks) {
  Table t(0, "name|>n");
  t.row({"a", "5"});
  t.row({"long name", "12345"});
  t.row({"no number"});
  EXPECT_EQ(t.text(k_plain), "name           n\n"
                             "a              5\n"
                             "long name  12345\n"
                             "no number\n");
}

TEST(Table, LeavesOutAnEmptyLineOfHeads) {
  Table t(2, "|>");
  t.row({"a", "5"});
  EXPECT_EQ(t.text(k_plain), "  a  5\n");
}

TEST(Table, PutsShortHeadsNextToTheirColumn) {
  Table t(0, "x|>two\nlines");
  t.row({"1", "2"});
  EXPECT_EQ(t.text(k_plain), "     two\n"
                             "x  lines\n"
                             "1      2\n");
}

TEST(Table, WrapsTheColumnThatMayWrap) {
  Table t(0, "k|~text");
  t.row({"a", "one two three four five six seven"}); // 33 columns; 28 - 1 - 2 = 25 are left
  EXPECT_EQ(t.text(wide(28)), "k  text\n"
                              "a  one two three four five\n"
                              "   six seven\n");
  EXPECT_EQ(t.text(k_plain), "k  text\n"
                             "a  one two three four five six seven\n");
}

TEST(Table, CutsAWideTableIntoSeveralWithTheFirstColumnInEach) {
  Table t(0, "id|aaaa|bbbb|cccc");
  t.row({"1", "2", "3", "4"});
  // id, aaaa, bbbb take 2 + 2 + 4 + 2 + 4 = 14.
  EXPECT_EQ(t.text(wide(14)), "id  aaaa  bbbb\n"
                              "1   2     3\n"
                              "\n"
                              "id  cccc\n"
                              "1   4\n");
  EXPECT_EQ(t.text(wide(20)), "id  aaaa  bbbb  cccc\n"
                              "1   2     3     4\n");
}

TEST(Table, ShowsAColumnThatIsWiderThanTheTerminalAllTheSame) {
  Table t(0, "id|a much too long head|b");
  t.row({"1", "2", "3"});
  EXPECT_EQ(t.text(wide(5)), "id  a much too long head\n"
                             "1   2\n"
                             "\n"
                             "id  b\n"
                             "1   3\n");
}

TEST(Table, AlignsByCharactersNotBytesOrEscapeSequences) {
  Table t(0, "a|>b");
  t.row({"µs", {"1", Tone::bad}});
  t.row({"ns", "22"});
  EXPECT_EQ(t.text({Colors::ansi256, 0}), "\x1b[1ma\x1b[0m    \x1b[1mb\x1b[0m\n"
                                          "µs   \x1b[31m1\x1b[0m\n"
                                          "ns  22\n");
}

TEST(Table, PaintsTheWholeCell) {
  Table t(0, ">");
  TableCell cell("1");
  cell.background = Rgb{255, 255, 255};
  t.row({cell});
  t.row({"22"});
  EXPECT_EQ(t.text({Colors::ansi256, 0}), "\x1b[38;5;16;48;5;231m 1\x1b[0m\n22\n");
}

TEST(Table, DisarmsTextOfDocuments) {
  Table t(0, "a\x1b[2J");
  t.row({"b\nc"});
  EXPECT_EQ(t.text(k_plain), "a?[2J\nb?c\n");
}

} // namespace
} // namespace reckon
