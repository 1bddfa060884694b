// SPDX-License-Identifier: Apache-2.0
#include "present/numbers.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(Significant, KeepsTheNumberOfDigits) {
  EXPECT_EQ(significant(12.3, 4), "12.30");
  EXPECT_EQ(significant(1, 4), "1.000");
  EXPECT_EQ(significant(123456, 4), "123500");
  EXPECT_EQ(significant(0.0123, 2), "0.012");
  EXPECT_EQ(significant(-12.34, 3), "-12.3");
  EXPECT_EQ(significant(9.9996, 4), "10.00"); // rounding gains a digit before the point
  EXPECT_EQ(significant(0, 4), "0");
  EXPECT_EQ(significant(1e-320, 4), "1e-320"); // too small for std::stod
}

TEST(TimeText, ChoosesTheUnit) {
  EXPECT_EQ(time_text(0), "0 s");
  EXPECT_EQ(time_text(12.34e-9), "12.34 ns");
  EXPECT_EQ(time_text(1e-6), "1.000 us");
  EXPECT_EQ(time_text(999.96e-6), "1.000 ms"); // not 1000 us
  EXPECT_EQ(time_text(0.15), "150.0 ms");
  EXPECT_EQ(time_text(75), "75.00 s");
  EXPECT_EQ(time_text(-0.002), "-2.000 ms");
  EXPECT_EQ(time_text(4.684e-16), "0 s"); // what the difference of two times leaves
}

TEST(GbPerS, HasTwoDecimalsOrTwoDigits) {
  EXPECT_EQ(gb_per_s_text(12.345e9), "12.35");
  EXPECT_EQ(gb_per_s_text(0.1e9), "0.10");
  EXPECT_EQ(gb_per_s_text(47.74e6), "0.0477");
  EXPECT_EQ(gb_per_s_text(0), "0.00");
}

TEST(ChangeText, SpeaksInPercentAndFromAFactorOfTwoOnInFactors) {
  EXPECT_EQ(change_text(0.062), "+6.2 %");
  EXPECT_EQ(change_text(-0.12), "-12 %");
  EXPECT_EQ(change_text(0.0004), "+0.04 %");
  EXPECT_EQ(change_text(-1e-7), "< 0.01 %"); // not "-0.00 %"
  EXPECT_EQ(change_text(0), "+0.00 %");
  EXPECT_EQ(change_text(0.99), "+99 %");
  EXPECT_EQ(change_text(1), "x 2.0");
  EXPECT_EQ(change_text(2.4), "x 3.4");
  EXPECT_EQ(change_text(-0.75), "x 0.25");
}

TEST(PercentText, KeepsTwoDigits) {
  EXPECT_EQ(percent_text(0), "0 %");
  EXPECT_EQ(percent_text(0.0004), "0.04 %");
  EXPECT_EQ(percent_text(0.015), "1.5 %");
  EXPECT_EQ(percent_text(0.93), "93 %");
}

TEST(QuantityText, FollowsTheUnit) {
  EXPECT_EQ(quantity_text(0.5, "seconds"), "500.0 ms");
  EXPECT_EQ(quantity_text(4194304, "bytes"), "4 MiB");
  EXPECT_EQ(quantity_text(-1024, "bytes"), "-1 KiB");
  EXPECT_EQ(quantity_text(1e30, "bytes"),
            "7994 PiB"); // as much as a file system can name, not a crash
  EXPECT_EQ(quantity_text(12.5e9, "bytes_per_second"), "12.5 GB/s");
  EXPECT_EQ(quantity_text(0.0123, "ratio"), "1.2 %");
  EXPECT_EQ(quantity_text(3, ""), "3");
}

} // namespace
} // namespace reckon
