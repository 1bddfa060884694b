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

TEST(SplitForVectors, TakesAsManyVectorsAsPointersAndLengthAllow) {
  struct Case {
    std::uintptr_t to;
    std::vector<const void*> sources;
    std::size_t elements, element_bytes, head, vectors, tail;
  };
  for (const Case& c : std::vector<Case>{
           {0x1000, {at(0x2000), at(0x3000)}, 64, 4, 0, 16, 0}, // 256 bytes
           // 0x1006 is 10 bytes before 0x1010: 5 halves. Of the other 95, 11 vectors of 8, 7 left.
           {0x1006, {at(0x2006)}, 100, 2, 5, 11, 7},
           {0x1000, {at(0x2000), at(0x3004)}, 100, 4, 100, 0, 0}, // not aligned alike
           {0x1002, {at(0x2002)}, 100, 4, 100, 0, 0}}) {          // 14 bytes are no fp32s
    SCOPED_TRACE(c.to);
    const VectorSplit split = split_for_vectors(at(c.to), c.sources, c.elements, c.element_bytes);
    EXPECT_EQ(split.head, c.head);
    EXPECT_EQ(split.vectors, c.vectors);
    EXPECT_EQ(split.tail, c.tail);
  }
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
