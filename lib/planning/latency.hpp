// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"

namespace reckon {

/// For a plan whose busiest link explains less than half of its predicted time: adds how much of
/// the time is latency (quantity `latency_seconds`, from plays with the profile's latencies and
/// without), and the remedy. Not for plans with passes, asynchronous steps or one queue, nor with
/// many parts.
void add_latency(Plan& plan, const Profile& profile);

} // namespace reckon
