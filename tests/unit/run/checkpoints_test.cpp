// SPDX-License-Identifier: Apache-2.0
// Two ranks' checkpoints in one process, which tell each other at barriers how far they are.
#include "run/checkpoints.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <unistd.h>

namespace reckon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CheckpointsTest : public testing::Test {
protected:
  CheckpointsTest()
      : m_path(std::filesystem::temp_directory_path() /
               ("reckon-two-ranks-" + std::to_string(::getpid()))) {
    m_saving.saved = {{{0, 0, 8, {1, 0}}, {0, 0}}};
  }
  ~CheckpointsTest() override {
    m_ranks = {};
    std::filesystem::remove_all(m_path);
  }
  /// Saves after every second step; `keep`: what the run went on from.
  void begin(const std::vector<std::uint64_t>& keep = {}) {
    for (int r = 0; r < 2; ++r) {
      m_ranks[static_cast<std::size_t>(r)] = std::make_unique<Checkpoints>(
          CheckpointFolder(m_path.string()), CheckpointJob{"plan", r, 2}, 2, Optimizer::sgd,
          m_saving, m_views, keep);
    }
  }
  /// A barrier before the step after `steps`; nothing: no step comes. Both ranks decide alike.
  bool meet(std::optional<std::uint64_t> steps) {
    const std::array<CheckpointState, 2> states{m_ranks[0]->state(), m_ranks[1]->state()};
    const bool saves = m_ranks[0]->hear(states, steps);
    EXPECT_EQ(m_ranks[1]->hear(states, steps), saves);
    return saves;
  }
  void wait() const {
    for (const auto& rank : m_ranks) {
      ASSERT_TRUE(rank->idle_within(std::chrono::minutes(2))); // what hangs
    }
  }
  /// A barrier and the step after it, which both ranks save.
  void save(std::uint64_t steps, const std::string& wrong_at_rank_1 = "") {
    ASSERT_TRUE(meet(steps));
    m_ranks[0]->save(steps, "");
    m_ranks[1]->save(steps, wrong_at_rank_1);
    wait();
  }
  /// Until all know what became of the last one.
  void conclude() {
    for (int i = 0; i < 3 && !m_ranks[0]->concluded(); ++i) {
      meet(std::nullopt);
      wait();
    }
    EXPECT_TRUE(m_ranks[0]->concluded() && m_ranks[1]->concluded());
  }
  [[nodiscard]] std::vector<std::uint64_t> complete() const {
    return CheckpointFolder(m_path.string()).complete_steps();
  }

  std::filesystem::path m_path;
  RankProgram m_saving;
  std::array<std::byte, 8> m_memory{};
  std::array<std::span<std::byte>, 1> m_views{std::span<std::byte>(m_memory)};
  std::array<std::unique_ptr<Checkpoints>, 2> m_ranks;
};

TEST_F(CheckpointsTest, TheLastTwoThatAreCompleteAreKept) {
  begin();
  EXPECT_FALSE(meet(0)); // there is nothing to save yet
  EXPECT_FALSE(meet(1));
  for (const std::uint64_t steps : {2U, 4U, 6U}) {
    save(steps);
    conclude();
  }
  wait();
  EXPECT_THAT(complete(), ElementsAre(4, 6));
  EXPECT_THAT(CheckpointFolder(m_path.string()).steps_of(1), ElementsAre(4, 6));
  EXPECT_EQ(m_ranks[1]->counts().complete, 3U);
  EXPECT_EQ(m_ranks[1]->counts().bytes, 16U); // of both ranks
  EXPECT_EQ(m_ranks[1]->counts().write_seconds.size(), 3U);
}

TEST_F(CheckpointsTest, OneIsCompleteOnlyWhenAllHaveSaidSo) {
  begin();
  save(2);
  EXPECT_THAT(complete(), testing::IsEmpty()); // both parts are there, and nobody has been told
  meet(3);                                     // now they are, and rank 0 writes it down
  wait();
  EXPECT_THAT(complete(), ElementsAre(2));
  EXPECT_EQ(m_ranks[0]->counts().complete, 0U);
  meet(4);
  EXPECT_EQ(m_ranks[0]->counts().complete, 1U);
}

TEST_F(CheckpointsTest, OneThatIsDueWhileARankWritesIsSkipped) {
  begin();
  CheckpointState busy = m_ranks[1]->state();
  busy.busy = true;
  const std::array<CheckpointState, 2> states{m_ranks[0]->state(), busy};
  EXPECT_FALSE(m_ranks[0]->hear(states, 2));
  EXPECT_TRUE(m_ranks[0]->somebody_writes());
  EXPECT_EQ(m_ranks[0]->counts().skipped, 1U);
  EXPECT_TRUE(m_ranks[0]->concluded());
}

TEST_F(CheckpointsTest, WhatARankFoundWrongFailsItForAll) {
  begin();
  save(2, "saved parameter of gradient byte 4: expected 1, got 2");
  conclude();
  EXPECT_THAT(complete(), testing::IsEmpty());
  for (const auto& rank : m_ranks) {
    EXPECT_EQ(rank->counts().failed, 1U);
    EXPECT_EQ(rank->counts().first_failure,
              "checkpoint after step 2: rank 1: saved parameter of gradient byte 4: expected 1, "
              "got 2");
  }
}

TEST_F(CheckpointsTest, AFolderThatIsGoneFailsItForAll) {
  begin();
  std::filesystem::remove_all(m_path);
  std::ofstream(m_path) << "no folder"; // so that root cannot write there either
  save(2);
  conclude();
  EXPECT_EQ(m_ranks[1]->counts().failed, 1U);
  EXPECT_THAT(m_ranks[1]->counts().first_failure, test::Says("step 2"));
}

TEST_F(CheckpointsTest, WhatTheRunDoesNotGoOnFromIsRemoved) {
  begin();
  for (const std::uint64_t steps : {2U, 4U}) {
    save(steps);
    conclude();
  }
  m_ranks = {};
  begin({2});
  EXPECT_THAT(complete(), ElementsAre(2));
  EXPECT_FALSE(meet(2)); // it is there already
  EXPECT_TRUE(meet(4));
}

} // namespace
} // namespace reckon
