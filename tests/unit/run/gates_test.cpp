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

/// The first delays of these parts, each after the one before, then the second one of the first.
LaneProgram chain(std::size_t parts) {
  LaneProgram program;
  std::vector<std::uint32_t> before;
  for (std::size_t i = 0; i <= parts; ++i) {
    const Op op{.kind = OpKind::delay, .part = static_cast<std::uint32_t>(i % parts)};
    before = {program.append(op, before)};
  }
  return program;
}

/// Tensors of one part each.
std::vector<std::vector<std::uint32_t>> one_each(std::size_t tensors) {
  std::vector<std::vector<std::uint32_t>> parts;
  for (std::size_t t = 0; t < tensors; ++t) {
    parts.push_back({static_cast<std::uint32_t>(t)});
  }
  return parts;
}

bool rings(int bell) {
  pollfd polled{bell, POLLIN, 0};
  return ::poll(&polled, 1, 0) == 1;
}

TEST(Gates, ADelayEndsWhenItsGateIsOpenAndTheBellSaysSo) {
  Gates gates(one_each(2));
  const LaneProgram program = chain(2);
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

  delays->start(2, 0); // only says that the sum is there
  EXPECT_EQ(delays->next_over(10).value().op, 2U);
  EXPECT_FALSE(delays->ask_again_ns(11));
}

TEST(Gates, APartWaitsForAllOfItsTensorsAndATensorIsInSeveralParts) {
  // Part 0 has tensors 0 and 1, part 1 the rest of tensor 1.
  Gates gates({{0}, {0, 1}});
  const LaneProgram program = chain(2);
  const std::unique_ptr<Delays> delays = gates.delays_of(program);
  for (int step = 0; step < 2; ++step) {
    gates.close();
    delays->reset();
    delays->start(0, 0);
    delays->start(1, 0);
    ASSERT_TRUE(gates.take(0, 1));
    const int bell = delays->bell();
    gates.open(0, 1);
    EXPECT_FALSE(delays->next_over(1));
    EXPECT_FALSE(rings(bell)) << "no gate has opened";
    EXPECT_EQ(gates.closed(), 1U);
    ASSERT_TRUE(gates.take(1, 1));
    gates.open(1, 1);
    EXPECT_EQ(delays->next_over(2).value().op, 0U);
    EXPECT_EQ(delays->next_over(3).value().op, 1U);
    EXPECT_EQ(gates.passed_ns(), 3);
    EXPECT_EQ(gates.closed(), 0U);
  }
}

/// Parts that come when the test says so.
class Elsewhere final : public PartsElsewhere {
public:
  std::vector<bool> here = std::vector<bool>(2);
  std::vector<std::uint32_t> sums;

  bool arrived(std::uint32_t part) noexcept override { return here[part]; }
  void summed(std::uint32_t part) noexcept override { sums.push_back(part); }
};

TEST(Gates, APartThatComesByItselfIsWaitedForAndItsSumIsSaid) {
  Gates gates(one_each(2));
  Elsewhere elsewhere;
  gates.use(elsewhere);
  const LaneProgram program = chain(2);
  const std::unique_ptr<Delays> delays = gates.delays_of(program);
  delays->start(0, 0);
  EXPECT_GE(delays->ask_again_ns(0).value(), 1'000'000) << "the bell tells";
  elsewhere.here[0] = true;
  EXPECT_FALSE(delays->next_over(1)) << "what was there before is of the step before";
  elsewhere.here[0] = false;
  ASSERT_TRUE(gates.take(0, 2));
  gates.open(0, 2);
  EXPECT_FALSE(delays->next_over(2));
  EXPECT_LT(delays->ask_again_ns(0).value(), 1'000'000) << "nobody rings when it has come";
  elsewhere.here[0] = true;
  EXPECT_EQ(delays->ask_again_ns(0), 0);
  EXPECT_EQ(delays->next_over(3).value().op, 0U);
  EXPECT_TRUE(elsewhere.sums.empty());
  delays->start(2, 0);
  EXPECT_EQ(elsewhere.sums, std::vector<std::uint32_t>{0});
  EXPECT_EQ(delays->next_over(4).value().op, 2U);
}

TEST(Gates, AreTakenOnceUntilAllAreClosed) {
  Gates gates(one_each(4));
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
  Gates gates(one_each(k_gates));
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
