// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_probe.hpp"
#include "kernels/cuda_reduce.hpp"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace reckon {
namespace {

const void* at(std::uintptr_t address) {
  return reinterpret_cast<const void*>(address);
}

TEST(SplitForVectors, TakesAllElementsAsVectorsWherePointersAndLengthAllow) {
  const std::array<const void*, 2> sources{at(0x2000), at(0x3000)};
  const VectorSplit split = split_for_vectors(at(0x1000), sources, 64, 4); // 256 bytes
  EXPECT_EQ(split.head, 0U);
  EXPECT_EQ(split.vectors, 16U);
  EXPECT_EQ(split.tail, 0U);
}

TEST(SplitForVectors, ReachesAnAlignedAddressWithSingleElementsFirst) {
  // 0x1006 is 10 bytes before 0x1010: 5 halves. Of the other 95, 11 vectors of 8, and 7 are left.
  const std::array<const void*, 1> sources{at(0x2006)};
  const VectorSplit split = split_for_vectors(at(0x1006), sources, 100, 2);
  EXPECT_EQ(split.head, 5U);
  EXPECT_EQ(split.vectors, 11U);
  EXPECT_EQ(split.tail, 7U);
}

TEST(SplitForVectors, TakesSinglesWhereThePointersAreNotAlignedAlikeOrNotToAnElement) {
  const std::array<const void*, 2> unlike{at(0x2000), at(0x3004)};
  EXPECT_EQ(split_for_vectors(at(0x1000), unlike, 100, 4).head, 100U);
  const std::array<const void*, 1> odd{at(0x2002)};
  EXPECT_EQ(split_for_vectors(at(0x1002), odd, 100, 4).head, 100U); // 14 bytes are no fp32s
}

TEST(SplitForVectors, CoversEveryElementOnceAndAlignsEveryVector) {
  for (std::uintptr_t offset = 0; offset < 16; offset += 2) {
    for (const std::size_t bytes : {1U, 2U, 4U}) {
      for (std::size_t elements = 0; elements < 60; ++elements) {
        const std::array<const void*, 1> sources{at(0x2000 + offset)};
        const VectorSplit split = split_for_vectors(at(0x1000 + offset), sources, elements, bytes);
        EXPECT_EQ(split.head + split.vectors * (16 / bytes) + split.tail, elements);
        if (split.vectors > 0) {
          EXPECT_EQ((offset + split.head * bytes) % 16, 0U);
        }
      }
    }
  }
}

TEST(PatternWord, DiffersFromPlaceToPlaceAndFromSaltToSalt) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t salt = 0; salt < 4; ++salt) {
    for (std::uint64_t word = 0; word < 10'000; ++word) {
      seen.insert(gpu_pattern_word(word, salt));
    }
  }
  EXPECT_EQ(seen.size(), 40'000U);
}

} // namespace
} // namespace reckon
