// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "planning/request.hpp"

namespace reckon {

/// Throws Error{usage} where gradients on GPUs are asked for together with what has none of them.
void check_gpu_gradients(const PlanRequest& request);

/// Adds to a plan between processors' memories that the workers' gradients lie on GPUs: each part
/// is copied to the memory before it is sent, and its sum back (docs/equations.md, 18d). Throws
/// Error{input} where the profile does not say how fast the GPUs of a worker's machine are copied
/// from and to.
void add_gpu_gradients(Plan& plan, const Profile& profile);

} // namespace reckon
