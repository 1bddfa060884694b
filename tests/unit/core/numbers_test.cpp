// SPDX-License-Identifier: Apache-2.0
#include "core/csv.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(Numbers, AreFiniteAndTheWholeFieldOrItsBeginning) {
  EXPECT_EQ(finite_number("16.5"), 16.5);
  EXPECT_EQ(finite_number("16.5 GT/s"), std::nullopt);
  EXPECT_EQ(leading_number("16.5 GT/s PCIe"), 16.5);
  for (const char* const text : {"", "nan", "inf GT/s", "-inf", "1e999", "Unknown", " 1"}) {
    EXPECT_EQ(finite_number(text), std::nullopt) << text;
    EXPECT_EQ(leading_number(text), std::nullopt) << text;
  }
}

} // namespace
} // namespace reckon
