// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"

namespace reckon {

/// Says of a plan whose busiest link explains less than half of its predicted time how much of that
/// is latency: quantity `latency_seconds`, from plays of the plan with the profile's latencies and
/// without, and what relieves it. Not of plans with passes, asynchronous steps or one queue, nor of
/// many parts.
void add_latency(Plan& plan, const Profile& profile);

} // namespace reckon
