// SPDX-License-Identifier: Apache-2.0
#include "documents/measured_csv.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace reckon {
namespace {

std::string message_of(const auto& call) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "no error";
}
std::string curve_error(const std::string& text) {
  return message_of([&] { return curve_from_csv(text, "a.csv"); });
}
std::string matrix_error(const std::string& text) {
  return message_of([&] { return matrix_from_csv(text, "m.csv"); });
}

TEST(CurveCsv, IsReadInAnyColumnOrder) {
  const auto curve =
      curve_from_csv("\xEF\xBB\xBFseconds, bytes\r\n\r\n1e-6,0\r\n\"2.5e-3\" , 1e6\r\n", "a.csv");
  ASSERT_EQ(curve.size(), 2U);
  EXPECT_EQ(curve[0].bytes, 0);
  EXPECT_EQ(curve[0].seconds, 1e-6);
  EXPECT_EQ(curve[1].bytes, 1000000);
  EXPECT_EQ(curve[1].seconds, 2.5e-3);
}

TEST(CurveCsv, MistakesNameTheLineAndTheRemedy) {
  const std::string none =
      "a.csv: has no samples; write a header line \"bytes,seconds\" and one line a size";
  EXPECT_EQ(curve_error(""), none);
  EXPECT_EQ(curve_error("bytes,seconds\n\n"), none);
  EXPECT_EQ(curve_error("bytes\n1\n"),
            "a.csv:1: the header line has no column \"seconds\"; add it");
  EXPECT_EQ(curve_error("seconds\n1\n"),
            "a.csv:1: the header line has no column \"bytes\"; add it");
  EXPECT_EQ(curve_error("1024,0.5\n"), "a.csv:1: the header line names \"1024\"; the first line "
                                       "must name the columns bytes and seconds");
  EXPECT_EQ(curve_error("bytes,bytes,seconds\n"),
            "a.csv:1: the header line names \"bytes\" twice; remove one column");
  const std::string head = "bytes,seconds\n1,1\n";
  EXPECT_EQ(curve_error(head + "2\n"), "a.csv:3: has 1 field, the header line names 2");
  for (const char* bad : {"", "-1", "1.5", "nan", "inf", "4k", "1e17", "0x10"}) {
    EXPECT_EQ(curve_error(head + bad + ",1\n"), std::string("a.csv:3: bytes is \"") + bad +
                                                    "\"; must be a whole number from 0 to 2^53");
  }
  for (const char* bad : {"", "-1", "0", "nan", "inf", "1 s", "1e999"}) {
    EXPECT_EQ(curve_error(head + "2," + bad + "\n"),
              std::string("a.csv:3: seconds is \"") + bad + "\"; must be a number above 0");
  }
  EXPECT_EQ(curve_error(head + "1,2\n"),
            "a.csv:3: 1 bytes occur twice; keep one line a size, as the median of its times");
  EXPECT_EQ(curve_error(head + "4,2\n\n3,1\n"),
            "a.csv:5: 3 bytes stand after 4; sort the lines by bytes");
  EXPECT_EQ(curve_error(head + "2,\x1b[31m\n"),
            "a.csv:3: seconds is \"\\u001b[31m\"; must be a number above 0");
}

TEST(FactorsCsv, HaveAColumnOfTheirOwn) {
  EXPECT_EQ(curve_from_csv("bytes,speedup\n1,9\n", "s.csv", "speedup")[0].seconds, 9);
  EXPECT_EQ(message_of([] { return curve_from_csv("bytes,speedup\n1,0\n", "s.csv", "speedup"); }),
            "s.csv:2: speedup is \"0\"; must be a number above 0");
}

TEST(MatrixCsv, HasOneLineForEachNameInAnyOrder) {
  const BandwidthMatrix matrix =
      matrix_from_csv("from,a,b,c\nb,1e9,,\na,0,2e9,3e9\nc,4e9,5e9,9\n", "m.csv");
  EXPECT_EQ(matrix.names, (std::vector<std::string>{"a", "b", "c"}));
  using Row = std::vector<std::optional<double>>;
  EXPECT_EQ(matrix.bytes_per_s[0], (Row{std::nullopt, 2e9, 3e9}));
  EXPECT_EQ(matrix.bytes_per_s[1], (Row{1e9, std::nullopt, std::nullopt}));
  EXPECT_EQ(matrix.bytes_per_s[2], (Row{4e9, 5e9, std::nullopt}));
}

TEST(MatrixCsv, MistakesNameTheLineAndTheRemedy) {
  EXPECT_EQ(matrix_error(""), "m.csv: is empty; write a header line \"from,NAME,NAME...\" and one "
                              "line for each name");
  const std::string wrong_head =
      "m.csv:1: the header line must be \"from\" and the names of at least two endpoints";
  EXPECT_EQ(matrix_error("a,b,c\n"), wrong_head);
  EXPECT_EQ(matrix_error("from,a\n"), wrong_head);
  EXPECT_EQ(matrix_error("from,a,\n"),
            "m.csv:1: an endpoint in the header line has no name; add it");
  EXPECT_EQ(matrix_error("from,a,a\n"),
            "m.csv:1: the header line names \"a\" twice; rename or remove one");
  const std::string head = "from,a,b\na,,1\n";
  EXPECT_EQ(matrix_error(head), "m.csv: has no line for \"b\"; add it");
  EXPECT_EQ(matrix_error(head + "a,,1\n"), "m.csv:3: \"a\" has a second line; remove one");
  EXPECT_EQ(matrix_error(head + "c,,1\n"), "m.csv:3: \"c\" is not in the header line; add a column "
                                           "for it or remove the line");
  EXPECT_EQ(matrix_error(head + "b,1\n"), "m.csv:3: has 2 fields, the header line names 3");
  for (const char* bad : {"-1", "0", "nan", "12GB/s"}) {
    EXPECT_EQ(matrix_error(head + "b," + bad + ",\n"),
              std::string("m.csv:3: from b to a is \"") + bad +
                  "\"; must be a number of bytes per second above 0, or empty where there is no "
                  "link");
  }
}

} // namespace
} // namespace reckon
