// SPDX-License-Identifier: Apache-2.0
#include "probe/pin.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace reckon {
namespace {

TEST(NodeMemory, IsTouchedZeroedAndAligned) {
  const NodeMemory memory(5 << 20U, std::nullopt);
  ASSERT_EQ(memory.bytes().size(), 5U << 20U);
  EXPECT_TRUE(std::all_of(memory.bytes().begin(), memory.bytes().end(),
                          [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.bytes().data()) % (2U << 20U), 0U);
}

TEST(NodeMemory, ChecksWhereItsPagesAre) {
  const NodeMemory memory(8 << 20U, 0); // every machine has a node 0
  const Placement placement = memory.placement();
  if (placement.pages_checked == 0) {
    GTEST_SKIP() << placement.doubt;
  }
  EXPECT_EQ(placement.pages_elsewhere, 0U) << placement.doubt;
  EXPECT_TRUE(placement.doubt.empty());
  EXPECT_GE(placement.huge, 0);
  EXPECT_LE(placement.huge, 1);
}

TEST(NodeMemory, RefusesANodeThatIsNotThere) {
  try {
    const NodeMemory memory(4096, 900);
    GTEST_SKIP() << "binding memory is forbidden here";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::operation);
    EXPECT_NE(std::string(error.what()).find("NUMA node 900"), std::string::npos);
  }
}

TEST(NodeMemory, MovesItsOwnership) {
  NodeMemory a(1 << 20U, std::nullopt, NodeMemory::Pages::small);
  std::byte* const data = a.bytes().data();
  const NodeMemory b(std::move(a));
  EXPECT_EQ(b.bytes().data(), data);
  b.bytes()[0] = std::byte{1};
}

} // namespace
} // namespace reckon
