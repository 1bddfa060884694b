// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/checker.hpp"
#include "strategies/lower.hpp"

#include <gmock/gmock.h>

namespace reckon::test {

/// The schedule of a plan is proved, and each rank moves what the plan says of it.
inline void expect_proved(const Plan& plan) {
  const Schedule schedule = lower(plan);
  ASSERT_THAT(check(schedule).faults, ::testing::IsEmpty());
  const Traffic traffic = traffic_of(schedule);
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    EXPECT_EQ(traffic.egress_bytes[r], plan.ranks[r].egress_bytes) << "rank " << r;
    EXPECT_EQ(traffic.ingress_bytes[r], plan.ranks[r].ingress_bytes) << "rank " << r;
  }
}

} // namespace reckon::test
