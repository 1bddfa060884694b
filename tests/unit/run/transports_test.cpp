// SPDX-License-Identifier: Apache-2.0
#include "run/transports.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

/// Two machines with two ranks each, or one machine with all.
Plan plan_on(std::uint64_t machines) {
  Plan plan;
  plan.transport = "tcp;ofi_rxm";
  for (std::uint64_t r = 0; r < 4; ++r) {
    PlanRank& rank = plan.ranks.emplace_back();
    rank.machine = "m0";
    rank.machine_number = r * machines / 4;
  }
  return plan;
}

RunOptions chosen(const Plan& plan, const std::string& asked) {
  RunOptions options;
  choose_transports(options, plan, asked);
  return options;
}

TEST(Transports, EitherLevelOrBothOrOneForAll) {
  const Plan plan = plan_on(2);
  for (const auto& [asked, inside, between] :
       {std::tuple("", "host", "tcp;ofi_rxm"), std::tuple("inside=shm", "shm", "tcp;ofi_rxm"),
        std::tuple("between=verbs;ofi_rxm", "host", "verbs;ofi_rxm"),
        std::tuple("inside=shm,between=verbs;ofi_rxm", "shm", "verbs;ofi_rxm"),
        std::tuple("shm", "", "shm")}) {
    const RunOptions options = chosen(plan, asked);
    EXPECT_EQ(options.inside_transport, inside) << asked;
    EXPECT_EQ(options.transport, between) << asked;
  }
}

TEST(Transports, WhatIsNotOfThisFormIsRefusedWithTheForm) {
  const Plan plan = plan_on(2);
  // With ';' instead of ',' all that follows would be a transport's name.
  EXPECT_REFUSED(usage, "'inside=shm;between=tcp'", chosen(plan, "inside=shm;between=tcp"));
  EXPECT_REFUSED(usage, "comma", chosen(plan, "inside=shm;between=tcp"));
  EXPECT_REFUSED(usage, "'inside='", chosen(plan, "inside="));
  EXPECT_REFUSED(usage, "'' is no level", chosen(plan, "inside=shm,"));
  EXPECT_REFUSED(usage, "'outside=tcp'", chosen(plan, "outside=tcp"));
  EXPECT_REFUSED(usage, "share", chosen(plan_on(1), "inside=shm"));
}

} // namespace
} // namespace reckon
