// SPDX-License-Identifier: Apache-2.0
#include "probe/background.hpp"

#include "core/error.hpp"
#include "core/processors.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

namespace reckon {
namespace {

TEST(Background, EveryThreadHasWorkedOnceWhenItReturnsAndNoneWorksAfterItsEnd) {
  const int cpu = allowed_cpus().front();
  std::array<std::atomic<std::uint64_t>, 3> calls{};
  std::atomic<int> at_work{0};
  std::atomic<bool> ended{false};
  {
    const Background background({cpu, cpu, cpu}, [&](std::size_t rank, std::uint64_t index) {
      ++at_work;
      EXPECT_FALSE(ended);
      EXPECT_EQ(calls.at(rank).load(), index); // 0, 1, 2, ... on each thread
      ++calls.at(rank);
      std::this_thread::yield(); // nearly all of a thread's time passes here, at work
      --at_work;
    });
    for (const auto& count : calls) {
      EXPECT_GE(count.load(), 1U);
    }
  }
  ended = true;
  EXPECT_EQ(at_work, 0); // all threads are joined, not only told to stop
}

TEST(Background, AProcessorThatIsNotThereIsAnError) {
  EXPECT_THROW(Background({1 << 20}, [](std::size_t, std::uint64_t) {}), Error);
}

} // namespace
} // namespace reckon
