// SPDX-License-Identifier: Apache-2.0
#include "present/style.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using testing::ElementsAre;

const Style k_plain;
const Style k_256{Colors::ansi256, 0};
const Style k_full{Colors::truecolor, 0};

TEST(Printable, KeepsTextOfAnyLanguage) {
  EXPECT_EQ(printable("Grüße 日本 µs 🙂"), "Grüße 日本 µs 🙂");
}

TEST(Printable, TakesTheTeethOutOfEscapeSequences) {
  EXPECT_EQ(printable("\x1b[31mred\x1b]0;title\x07"), "?[31mred?]0;title?");
  EXPECT_EQ(printable("a\r\nb\tc\x7f"), "a??b?c?");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
  // U+009B is the escape sequence's beginning in one character.
  EXPECT_EQ(printable("\u009b31m"), "?31m");
}

TEST(Printable, ReplacesWhatTurnsTheDirectionOfWriting) {
  EXPECT_EQ(printable("a\u202eb\u2066c\u200fd\u2028e"), "a?b?c?d?e");
}

TEST(Printable, ReplacesBrokenUtf8ByteByByte) {
  EXPECT_EQ(printable("\xff"), "?");
  EXPECT_EQ(printable("a\xc3"), "a?");              // cut off
  EXPECT_EQ(printable("\xc0\xaf"), "??");           // '/' in two bytes
  EXPECT_EQ(printable("\xe0\x80\x80z"), "???z");    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "???");      // a surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????"); // beyond U+10FFFF
}

TEST(Columns, CountsCodePoints) {
  EXPECT_EQ(columns_of("Grüße"), 5U);
  EXPECT_EQ(first_columns("Grüße", 3), "Grü");
  EXPECT_EQ(first_columns("ab", 5), "ab");
  EXPECT_EQ(first_columns("ab", 0), "");
}

TEST(Wrapped, BreaksAtBlanksAndThroughLongWords) {
  EXPECT_THAT(wrapped("one two three", 8), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("abcdefgh ij", 4), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(wrapped("short", 10), ElementsAre("short"));
  EXPECT_THAT(wrapped("", 10), ElementsAre(""));
}

TEST(Wrapped, BreaksAfterSemicolonsAndOutsideOfParentheses) {
  // The last blank that fits stands in (4 < 5); the one before it outside of it.
  EXPECT_THAT(wrapped("1 < 2 < 3 (4 < 5) 6", 14), ElementsAre("1 < 2 < 3", "(4 < 5) 6"));
  // A semicolon in the second half of a line goes before later blanks.
  EXPECT_THAT(wrapped("1 < 2 < 3; back 4 < 5", 18), ElementsAre("1 < 2 < 3;", "back 4 < 5"));
  // Inside from the first line on: the fewest are those of the outer pair.
  EXPECT_THAT(wrapped("(aaaa bbbb (cc dd) ee", 14), ElementsAre("(aaaa bbbb", "(cc dd) ee"));
}

TEST(Wrapped, KeepsWhatStandsWithoutABreakTogether) {
  const std::string together = "p" + std::string(k_no_break) + "4";
  EXPECT_THAT(wrapped("aaa " + together, 5), ElementsAre("aaa", "p 4"));
  EXPECT_THAT(wrapped(together, 10), ElementsAre("p 4"));
}

TEST(Folded, KeepsTheIndentOfTheFirstLine) {
  EXPECT_EQ(folded("  one two three", {Colors::none, 10}), "  one two\n  three\n");
}

TEST(Folded, LeavesLinesWholeOutsideOfATerminal) {
  EXPECT_EQ(folded("one two three", k_plain), "one two three\n");
  EXPECT_EQ(folded("one two three", {Colors::none, 8}), "one two\nthree\n");
}

TEST(Toned, AddsNothingWithoutColours) {
  EXPECT_EQ(toned("x", Tone::bad, k_plain), "x");
  EXPECT_EQ(toned("x", Tone::bad, k_256), "\x1b[31mx\x1b[0m");
  EXPECT_EQ(toned("x", Tone::plain, k_256), "x");
}

TEST(HeatColor, RisesInLightness) {
  double before = -1;
  for (int i = 0; i <= 100; ++i) {
    const Rgb c = heat_color(i / 100.0);
    const double luma = 0.299 * c.red + 0.587 * c.green + 0.114 * c.blue;
    EXPECT_GT(luma, before) << i;
    before = luma;
  }
}

TEST(HeatColor, TakesTheNearestEndForValuesOutside) {
  EXPECT_EQ(heat_color(-1).blue, heat_color(0).blue);
  EXPECT_EQ(heat_color(7).red, heat_color(1).red);
  EXPECT_EQ(heat_color(std::numeric_limits<double>::quiet_NaN()).red, heat_color(0).red);
}

TEST(OnBackground, WritesBlackOnLightAndWhiteOnDark) {
  EXPECT_EQ(on_background("x", {0, 0, 0}, k_full), "\x1b[38;5;231;48;2;0;0;0mx\x1b[0m");
  EXPECT_EQ(on_background("x", {255, 255, 255}, k_full), "\x1b[38;5;16;48;2;255;255;255mx\x1b[0m");
  // In the cube of 6 x 6 x 6: black is 16, white 231, and (95, 135, 175) is 16 + 36 + 12 + 3.
  EXPECT_EQ(on_background("x", {0, 0, 0}, k_256), "\x1b[38;5;231;48;5;16mx\x1b[0m");
  EXPECT_EQ(on_background("x", {95, 135, 175}, k_256), "\x1b[38;5;231;48;5;67mx\x1b[0m");
  EXPECT_EQ(on_background("x", {255, 255, 255}, k_256), "\x1b[38;5;16;48;5;231mx\x1b[0m");
  EXPECT_EQ(on_background("x", {1, 2, 3}, k_plain), "x");
}

} // namespace
} // namespace reckon
