// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

/// What COARSE III-F warns of: proxies that synchronize tensors first come, first served, one after
/// another, instead of all clients' queues at once. As in its figure 10 the first client is ahead
/// of the second, and so on: a proxy begins with what came from the first. Where two clients send
/// one tensor to different proxies that hold others of it first, the proxies wait for each other
/// for ever, which check() finds.
///
/// Throws Error{input} when a proxy's slots are used again within an iteration (a window smaller
/// than the number of parts in a lane).
[[nodiscard]] Schedule with_one_queue(const Schedule& schedule, const Plan& plan);

} // namespace reckon
