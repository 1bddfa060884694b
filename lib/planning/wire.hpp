// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "planning/request.hpp"

namespace reckon {

/// Throws Error{usage} where a request asks for more than sums of gradients that travel as another
/// type than theirs.
void check_wire(const PlanRequest& request);

/// Adds to a plan with a wire type the option and how far a sum may be off (docs/equations.md,
/// 22a). Throws Error{usage} where ranks are GPUs.
void add_wire(Plan& plan);

} // namespace reckon
