// SPDX-License-Identifier: Apache-2.0
#include "probe/guard.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

constexpr const char* k_stat = "cpu  100 0 50 1000 5 1 2 30 0 0\n"
                               "cpu0 60 5 20 500 5 1 1 10 0 0\n"
                               "cpu1 40 0 30 500 0 0 1 20 9 0\n"
                               "cpu10 7 0 0 0 0 0 0 0 0 0\n"
                               "intr 12345\n";

TEST(Guard, SumsTheProcessorsAskedFor) {
  // cpu0: user 60 + nice 5 + system 20 + irq 1 + softirq 1 = 87 ticks, steal 10.
  const auto one = parse_cpu_times(k_stat, {0}, 100);
  ASSERT_TRUE(one);
  EXPECT_DOUBLE_EQ(one->busy, 0.87);
  EXPECT_DOUBLE_EQ(one->stolen, 0.10);
  // cpu1: 40 + 30 + 1 = 71 (a guest's 9 are within user already), steal 20.
  const auto both = parse_cpu_times(k_stat, {0, 1}, 100);
  ASSERT_TRUE(both);
  EXPECT_DOUBLE_EQ(both->busy, 0.87 + 0.71);
  EXPECT_DOUBLE_EQ(both->stolen, 0.30);
  EXPECT_DOUBLE_EQ(parse_cpu_times(k_stat, {10}, 100)->busy, 0.07); // not "cpu1" with a tail
  EXPECT_FALSE(parse_cpu_times(k_stat, {0, 2}, 100));               // processor 2 is not there
}

TEST(Guard, JudgesByShareAndByWhatTicksCanTell) {
  constexpr double k_tick = 0.01;
  // 1 s on 2 processors, 1.9 s busy, 1.85 s of it ours: 2.5 % by others is quiet.
  EXPECT_EQ(judge_disturbance(1, 2, 1.9, 1.85, 0, k_tick), "");
  // 0.5 s of others is a quarter.
  EXPECT_EQ(judge_disturbance(1, 2, 1.5, 1.0, 0, k_tick),
            "other processes used 0.50 of 2 processors");
  // 0.02 s of others in 0.1 s would be a tenth, but two ticks may be two mistakes of counting.
  EXPECT_EQ(judge_disturbance(0.1, 2, 0.12, 0.10, 0, k_tick), "");
  EXPECT_NE(judge_disturbance(0.1, 2, 0.14, 0.10, 0, k_tick), "");
  // Ours may be counted finer than the sum: no negative others.
  EXPECT_EQ(judge_disturbance(1, 2, 0.5, 1.0, 0, k_tick), "");
  EXPECT_EQ(judge_disturbance(1, 2, 1.5, 1, 0.2, k_tick),
            "other processes used 0.50 of 2 processors, the hypervisor took 0.20 of 2 processors");
  EXPECT_EQ(judge_disturbance(0, 2, 1, 0, 1, k_tick), ""); // an empty interval
}

} // namespace
} // namespace reckon
