// SPDX-License-Identifier: Apache-2.0
#include "page/html.hpp"

#include "present/document_text.hpp"
#include "present/table.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

const Style k_marks{Colors::marks, 0};

TEST(Html, EscapesWhateverHasAMeaning) {
  EXPECT_EQ(escaped("<a href='x' onload=\"y\">&\x01"),
            "&lt;a href=&#39;x&#39; onload=&quot;y&quot;&gt;&amp;?");
}

TEST(Html, OfATableHasItsHeadsAlignmentTonesAndEscapedText) {
  Table table(2, "name|>GB/s|~cause");
  table.row({{"<b>", Tone::strong}, "1.5", {"a & b beside a third, too", Tone::bad}});
  EXPECT_EQ(html_of(table.text(k_marks)),
            "<div class=\"scroll\"><table style=\"--columns:3\"><tr><th>name</th>"
            "<th class=\"number\">GB/s</th><th class=\"sentence\">cause</th></tr><tr><td><span "
            "class=\"strong\">&lt;b&gt;</span></td>"
            "<td class=\"number\">1.5</td><td class=\"sentence\"><span class=\"bad\">a &amp; "
            "b beside a third, too</span></td></tr></table></div>\n");
}

TEST(Html, OfATableWithoutHeadsHasNoRowForThem) {
  Table table(0, "|~");
  table.row({"x", "y"});
  EXPECT_THAT(html_of(table.text(k_marks)), Not(HasSubstr("<th")));
}

TEST(Html, OfShortTextsInAColumnThatWrapsIsNotBroken) {
  Table table(0, "name||~");
  table.row({"servers", "4", "2"});
  EXPECT_THAT(html_of(table.text(k_marks)), HasSubstr("<td>2</td>"));
}

TEST(Html, SaysHowManyColumnsEachTableHas) {
  Table wide(0, "a|b|c|d"), narrow(0, "|");
  wide.row({"1"});
  narrow.row({"1", "2"});
  EXPECT_THAT(html_of(narrow.text(k_marks) + wide.text(k_marks)),
              ContainsRegex("columns:2.*columns:4"));
}

TEST(Html, OfALongNameInATableMayBreakItAtAnUnderline) {
  Table table(0, "");
  table.row({"cached_source"});
  EXPECT_THAT(html_of(table.text(k_marks)), HasSubstr("cached_<wbr>source"));
  EXPECT_THAT(html_of("cached_source"), HasSubstr("cached_source"));
}

TEST(Html, OfALongCellMayBreakItsLine) {
  Table table(0, ">before");
  table.row({"10.10 ms"});
  table.row({"a text of more than 24 columns"});
  EXPECT_THAT(html_of(table.text(k_marks)),
              AllOf(HasSubstr("<td class=\"number\">10.10 ms"),
                    HasSubstr("<td class=\"sentence\">a text of more")));
}

TEST(Html, OfTextIsTitlesAndParagraphs) {
  EXPECT_EQ(html_of(heading("links", k_marks) + "  one <line>\nanother\n\n" +
                    titled("paths", ", short", k_marks)),
            "<h3>links</h3>\n<p>one &lt;line&gt;</p>\n<p>another</p>\n"
            "<h3>paths<span class=\"dim\">, short</span></h3>\n");
}

TEST(Html, OfAToneInASentenceStaysInItsParagraph) {
  EXPECT_EQ(html_of("vm: " + toned("nothing odd", Tone::good, k_marks) + "; checked: 3\n"),
            "<p>vm: <span class=\"good\">nothing odd</span>; checked: 3</p>\n");
}

TEST(Html, OfATreeKeepsItsLines) {
  EXPECT_EQ(html_of(whole_lines("  a\n    b < c\n", k_marks)), "<pre>  a\n    b &lt; c\n</pre>\n");
}

TEST(Html, IsBalancedWhateverMarksATextHas) {
  // Printable text has no marks; these are what a slip of the code could leave in it.
  const std::string all =
      "\x01\x02\x03\x04\x05\x06\x07\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\n ax";
  std::uint32_t state = 1;
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      state = state * 1664525 + 1013904223;
      text += all[(state >> 16U) % all.size()];
    }
    std::vector<std::string> open;
    const std::string html = html_of(text);
    for (std::size_t at = html.find('<'); at != html.npos; at = html.find('<', at + 1)) {
      const std::string tag = html.substr(at + 1, html.find_first_of(" >", at) - at - 1);
      if (!tag.starts_with('/')) {
        open.push_back(tag);
      } else {
        ASSERT_FALSE(open.empty()) << html;
        ASSERT_EQ("/" + open.back(), tag) << html;
        open.pop_back();
      }
    }
    ASSERT_THAT(open, IsEmpty()) << html;
  }
}

TEST(Page, LeavesOutEmptySections) {
  const std::string page =
      page_of({"a <title>", "from x", "good", "<p>fine</p>\n"},
              {{"One", "<p>1</p>\n"}, {"None", ""}, {"Two & a half", "<p>2</p>\n"}});
  EXPECT_THAT(page, HasSubstr("<title>a &lt;title&gt;</title>"));
  EXPECT_THAT(page, HasSubstr("<a href=\"#s2\">Two &amp; a half</a>"));
  EXPECT_THAT(page, HasSubstr("<section id=\"s2\">\n<h2>Two &amp; a half</h2>\n<p>2</p>"));
  EXPECT_THAT(page, Not(HasSubstr("None")));
  EXPECT_LT(page.find("<p>fine</p>"), page.find("<p>1</p>"));
}

} // namespace
} // namespace reckon
