// SPDX-License-Identifier: Apache-2.0
#include "run/lanes.hpp"

#include "core/units.hpp"
#include "movers/fake.hpp"
#include "support/few_threads.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>

namespace reckon {
namespace {

constexpr std::chrono::minutes k_hung{2}; ///< ends what hangs

/// A rank with one lane and three bytes, alone in its network, which may do one of three things.
class LanesTest : public testing::Test {
protected:
  LanesTest() : m_mover(m_network.make_mover(0)) {
    m_buffers[0] = m_mover->allocate(3);
    m_mover->open(1);
    m_mover->connect(0, {m_mover->address()});
    for (RankProgram& program : m_programs) {
      program.lanes.resize(1);
    }
    for (std::size_t p = 0; p < 2; ++p) { // program p copies byte p to the next one
      m_programs[p].lanes[0].append(
          {.kind = OpKind::copy, .source = {0, p}, .destination = {0, p + 1}, .bytes = 1}, {});
    }
    m_programs[2].lanes[0].append_await(7, 1, 0); // of a rank that is not there
    m_buffers[0][0] = std::byte{5};
  }
  [[nodiscard]] bool run(Lanes& lanes, std::size_t program) {
    lanes.start(program, 1);
    return lanes.finished_within(k_hung);
  }

  FakeNetwork m_network{1, [](int, int, std::uint64_t) { return Seconds(1); }};
  std::unique_ptr<Mover> m_mover;
  std::array<std::span<std::byte>, 1> m_buffers;
  std::array<RankProgram, 3> m_programs;
  std::array<const RankProgram*, 3> m_pointers{&m_programs[0], &m_programs[1], &m_programs[2]};
};

TEST_F(LanesTest, EachRoundIsTheProgramThatIsAskedFor) {
  Lanes lanes(m_pointers, *m_mover, m_buffers, {-1}, {});
  ASSERT_TRUE(run(lanes, 1));
  EXPECT_EQ(m_buffers[0][2], std::byte{0}); // the second byte, before the first was copied to it
  ASSERT_TRUE(run(lanes, 0));
  EXPECT_EQ(m_buffers[0][1], std::byte{5});
  ASSERT_TRUE(run(lanes, 1));
  EXPECT_EQ(m_buffers[0][2], std::byte{5});
  EXPECT_EQ(lanes.error(), "");
  ASSERT_EQ(lanes.timeline().size(), 1U); // of the last round
  EXPECT_GE(lanes.timeline()[0].at(0).end_ns, lanes.timeline()[0].at(0).begin_ns);
  EXPECT_GT(lanes.timeline()[0].at(0).begin_ns, 0);
}

TEST_F(LanesTest, ALaneThatHangsSaysWhatItWaitsFor) {
  Lanes lanes(m_pointers, *m_mover, m_buffers, {-1}, {});
  lanes.start(2, 1);
  EXPECT_FALSE(lanes.finished_within(std::chrono::milliseconds(1)));
  EXPECT_EQ(lanes.stop_and_describe(), "lane 0 waits for the arrival of part 7 from rank 1");
}

/// As a transport's lock that a dead peer holds.
class HangingDelays final : public Delays {
public:
  explicit HangingDelays(const std::atomic<bool>& released) : m_released(released) {}
  void reset() noexcept override {}
  void start(std::uint32_t /*op*/, std::int64_t /*since_ns*/) noexcept override {
    m_released.wait(false);
  }
  std::optional<Over> next_over(std::int64_t /*now_ns*/) noexcept override { return std::nullopt; }
  std::optional<std::int64_t> ask_again_ns(std::int64_t now_ns) const noexcept override {
    return now_ns;
  }

private:
  const std::atomic<bool>& m_released;
};

TEST_F(LanesTest, ALaneThatCannotBeEndedIsToldFromOneThatCan) {
  std::atomic<bool> released{false};
  m_programs[2].lanes[0] = {};
  m_programs[2].lanes[0].append({.kind = OpKind::delay}, {});
  Lanes lanes(m_pointers, *m_mover, m_buffers, {-1},
              [&](const LaneProgram&) { return std::make_unique<HangingDelays>(released); });
  ASSERT_TRUE(run(lanes, 0));
  lanes.start(2, 1);
  EXPECT_FALSE(lanes.stopped_within(std::chrono::milliseconds(1)));
  released = true;
  released.notify_all();
  EXPECT_TRUE(lanes.stopped_within(k_hung));
}

TEST_F(LanesTest, ALaneThatFailsSaysWhy) {
  m_programs[2].lanes[0] = {};
  m_programs[2].lanes[0].append_write(0, 0, 0, {0, 0}, {0, 1000}, 1, {}); // outside of the buffer
  Lanes lanes(m_pointers, *m_mover, m_buffers, {-1}, {});
  ASSERT_TRUE(run(lanes, 2));
  EXPECT_THAT(lanes.error(), testing::StartsWith("lane 0: write(fake)"));
}

TEST(LanesDeathTest, ThreadsThatCannotBeStartedAreAnErrorAndTheOthersEnd) {
  FakeNetwork network{1, [](int, int, std::uint64_t) { return Seconds(1); }};
  const std::unique_ptr<Mover> mover = network.make_mover(0);
  mover->open(test::k_many_threads);
  RankProgram program;
  program.lanes.resize(test::k_many_threads);
  const std::array<const RankProgram*, 1> programs{&program};
  EXPECT_REFUSED_WITH_FEW_THREADS(
      const Lanes lanes(programs, *mover, {}, std::vector(test::k_many_threads, -1), {}));
}

} // namespace
} // namespace reckon
