// SPDX-License-Identifier: Apache-2.0
#include "core/digest.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

// The examples of FIPS 180-2, appendix B.
TEST(Digest, IsSha256) {
  EXPECT_EQ(digest_of(""),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of("abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "sha256:248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

} // namespace
} // namespace reckon
