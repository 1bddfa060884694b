// SPDX-License-Identifier: Apache-2.0
#include "movers/habits.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

TEST(Habits, AllAreThereUnlessSwitchedOff) {
  EXPECT_EQ(without_text(Habits{}), "");
  EXPECT_TRUE(Habits{}.lane_is_plain());
  const Habits habits = habits_without("shm,register-once");
  EXPECT_FALSE(habits.shared_memory);
  EXPECT_FALSE(habits.register_once);
  EXPECT_TRUE(habits.address_once && habits.aligned && habits.one_segment);
  EXPECT_EQ(without_text(habits), "register-once,shm");
}

TEST(Habits, EverySubsetIsItsTextAndBack) {
  for (unsigned subset = 1; subset < 32; ++subset) {
    const auto on = [&](unsigned bit) { return (subset >> bit & 1U) == 0; };
    const Habits habits{on(0), on(1), on(2), on(3), on(4)};
    EXPECT_EQ(habits_without(without_text(habits)), habits) << without_text(habits);
    EXPECT_EQ(habits.lane_is_plain(), on(0) && on(1) && on(3)) << without_text(habits);
    EXPECT_EQ(skew(habits), on(2) ? 0U : 8U);
  }
}

TEST(Habits, RefusesWhatIsNoneAndWhatComesTwice) {
  for (const char* text : {"", ",", "shm,", ",shm", "shm,,aligned", "SHM", "align", "aligned ",
                           "all", "aligned,shm,aligned"}) {
    EXPECT_REFUSED(usage, "--without", habits_without(text));
  }
}

TEST(Habits, WithoutSharedMemoryTheFirstNetworkTransportIsTaken) {
  EXPECT_EQ(without_shared_memory("host", {"host", "shm", "tcp;ofi_rxm", "verbs;ofi_rxm"}),
            "tcp;ofi_rxm");
  EXPECT_EQ(without_shared_memory("shm", {"host", "shm", "verbs;ofi_rxm"}), "verbs;ofi_rxm");
  EXPECT_REFUSED(usage, "shared", without_shared_memory("tcp;ofi_rxm", {"host", "tcp;ofi_rxm"}));
  EXPECT_REFUSED(unavailable, "no other transport", without_shared_memory("host", {"host", "shm"}));
}

} // namespace
} // namespace reckon
