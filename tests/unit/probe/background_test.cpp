// SPDX-License-Identifier: Apache-2.0
#include "probe/background.hpp"

#include "core/error.hpp"
#include "core/processors.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>

namespace reckon {
namespace {

TEST(Background, EveryThreadHasWorkedOnceWhenItReturnsAndNoneWorksAfterItsEnd) {
  const int cpu = allowed_cpus().front();
  std::array<std::atomic<std::uint64_t>, 3> calls{};
  {
    const Background background({cpu, cpu, cpu}, [&](std::size_t rank, std::uint64_t index) {
      EXPECT_EQ(calls.at(rank).load(), index); // 0, 1, 2, ... on each thread
      ++calls.at(rank);
    });
    for (const auto& count : calls) {
      EXPECT_GE(count.load(), 1U);
    }
  }
  // All threads are joined: whatever a thread did is done.
  std::array<std::uint64_t, 3> after{};
  for (std::size_t i = 0; i < after.size(); ++i) {
    after.at(i) = calls.at(i);
  }
  for (std::size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(calls.at(i), after.at(i));
  }
}

TEST(Background, AProcessorThatIsNotThereIsAnError) {
  EXPECT_THROW(Background({1 << 20}, [](std::size_t, std::uint64_t) {}), Error);
}

} // namespace
} // namespace reckon
