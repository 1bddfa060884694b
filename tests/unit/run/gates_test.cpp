// SPDX-License-Identifier: Apache-2.0
#include "run/gates.hpp"

#include "run/executor.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <poll.h>
#include <thread>

namespace reckon {
namespace {

/// Delays of no time, each after the one before.
LaneProgram chain(std::size_t delays) {
  LaneProgram program;
  std::vector<std::uint32_t> before;
  for (std::size_t i = 0; i < delays; ++i) {
    Op op;
    op.kind = OpKind::delay;
    before = {program.append(op, before)};
  }
  return program;
}

bool rings(int bell) {
  pollfd polled{bell, POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

TEST(Gates, ADelayEndsWhenItsGateIsOpenAndTheBellSaysSo) {
  Gates gates(2);
  const LaneProgram program = chain(3);
  const std::unique_ptr<Delays> delays = gates.delays_of(program);
  delays->start(0, 0);
  delays->start(1, 0);
  EXPECT_FALSE(rings(delays->bell()));
  EXPECT_FALSE(delays->next_over(5));
  EXPECT_GT(delays->ask_again_ns(5).value(), 5);

  ASSERT_TRUE(gates.take(1, 1));
  EXPECT_FALSE(delays->next_over(6)) << "taken is not open";
  gates.open(1, 1);
  EXPECT_EQ(delays->ask_again_ns(7), 7) << "what is open is not slept on";
  const Delays::Over over = delays->next_over(7).value();
  EXPECT_EQ(over.op, 1U);
  EXPECT_EQ(over.end_ns, 7);
  EXPECT_FALSE(delays->next_over(8));
  EXPECT_FALSE(rings(delays->bell())) << "asking stills it";
  ASSERT_TRUE(gates.take(0, 1));
  const int bell = delays->bell();
  gates.open(0, 1);
  EXPECT_TRUE(rings(bell));
  EXPECT_EQ(delays->next_over(9).value().op, 0U);

  delays->start(2, 0); // there is no third gate
  EXPECT_EQ(delays->next_over(10).value().op, 2U);
  EXPECT_FALSE(delays->ask_again_ns(11));
}

TEST(Gates, AreTakenOnceUntilAllAreClosed) {
  Gates gates(4);
  EXPECT_TRUE(gates.take(1, 1));
  EXPECT_FALSE(gates.take(0, 4));
  EXPECT_TRUE(gates.take(2, 2)) << "what was refused has taken none";
  EXPECT_TRUE(gates.take(0, 1));
  gates.open(0, 4);
  EXPECT_FALSE(gates.take(3, 1));
  gates.close();
  EXPECT_TRUE(gates.take(0, 4));
}

/// Nothing ever comes over it, and nothing of its own ends a sleep.
class SilentLane final : public MoverLane {
public:
  std::atomic<int> sleeps{0};

  bool write(int, Slice, Slice, std::uint64_t, std::uint32_t, std::uint64_t) noexcept override {
    return false;
  }
  std::size_t poll(std::span<Completion>) noexcept override { return 0; }
  void wait(std::chrono::nanoseconds) noexcept override {}
  std::optional<LaneSleep> before_sleep(std::chrono::nanoseconds) noexcept override {
    ++sleeps;
    return LaneSleep{-1, std::chrono::minutes(20)};
  }
  std::string error() const override { return ""; }
};

TEST(Gates, ALaneThatSleepsIsWokenByEachGate) {
  constexpr std::size_t k_gates = 50;
  Gates gates(k_gates);
  const LaneProgram program = chain(k_gates);
  SilentLane lane;
  LaneExecutor executor(program, lane, {}, gates.delays_of(program));
  const std::atomic<bool> stop{false};
  std::thread worker([&] { static_cast<void>(executor.run(1, stop)); });
  for (std::size_t gate = 0; gate < k_gates; ++gate) {
    const int before = static_cast<int>(gate);
    while (lane.sleeps.load() <= before) { // it sleeps, or is about to
      std::this_thread::yield();
    }
    ASSERT_TRUE(gates.take(gate, 1));
    gates.open(gate, 1);
  }
  worker.join(); // one lost ring, and this takes longer than the test may
  EXPECT_TRUE(executor.done());
}

} // namespace
} // namespace reckon
