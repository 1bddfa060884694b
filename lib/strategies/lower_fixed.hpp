// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

/// Lets a schedule that sums fp32 gradients sum whole numbers instead, as switches can: every
/// worker turns each part of its gradient, in place, into 32-bit fixed point before its first use,
/// and the part's sum back once it is there and has been passed on. In between nothing but int32 is
/// added. Throws Error{input} for gradients other than fp32.
[[nodiscard]] Schedule with_fixed_point(const Schedule& sums, const Plan& plan);

} // namespace reckon
