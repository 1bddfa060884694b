// SPDX-License-Identifier: Apache-2.0
#include "core/secrets.hpp"

#include <gtest/gtest.h>

#include <set>

namespace reckon {
namespace {

TEST(Secrets, NumbersDifferInEveryHalf) {
  std::set<std::uint64_t> high, low;
  for (int i = 0; i < 64; ++i) { // two of 64 are equal once in two million runs
    const std::uint64_t number = secret_number();
    high.insert(number >> 32U);
    low.insert(number & 0xFFFFFFFFU);
  }
  EXPECT_EQ(high.size(), 64U);
  EXPECT_EQ(low.size(), 64U);
  EXPECT_EQ(secret_text().size(), 32U);
  EXPECT_NE(secret_text(), secret_text());
}

TEST(Secrets, AProofIsTheHmacOfRfc4231) {
  EXPECT_EQ(proof_of("Jefe", "what do ya want for nothing?"), // its test case 2
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_NE(proof_of("", "text"), proof_of("", "texT")); // a job without a token
}

TEST(Secrets, EqualOnesAreEqualInAllTheirBytes) {
  using namespace std::string_view_literals;
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("a\0b"sv, "a\0b"sv));
  EXPECT_FALSE(same_secret("a\0b"sv, "a\0c"sv));
  EXPECT_FALSE(same_secret("xbc", "abc"));
  EXPECT_FALSE(same_secret("ab", "abc"));
  EXPECT_FALSE(same_secret("", "abc"));
}

} // namespace
} // namespace reckon
