// SPDX-License-Identifier: Apache-2.0
#include "core/memory.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(AvailableMemory, IsSomethingAndNoMoreThanThereCanBe) {
  EXPECT_GT(available_memory_bytes(), 1U << 20U);
  EXPECT_LT(available_memory_bytes(), std::uint64_t{1} << 50U);
}

} // namespace
} // namespace reckon
