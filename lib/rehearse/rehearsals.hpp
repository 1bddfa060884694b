// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "probe/campaign.hpp"
#include "probe/probe.hpp"

#include <vector>

namespace reckon {

/// Small plans of ranks that share this machine, played as `reckon run` plays them: by the executor
/// over each transport, in processes of their own, every sum checked. A cell `rehearsal` has bytes
/// of the gradient per second of an iteration, by strategy (`operation`), way of summing (`state`),
/// ranks (`threads`), workers among them (`sources`) and size of a part (`bytes`).
///
/// The gradients of all ranks together are far larger than what a processor keeps in caches of its
/// own, as those of a model are.
[[nodiscard]] std::vector<Campaign> rehearsal_campaigns(const RehearsalStage& stage);

/// Seconds of the iterations of a plan's rehearsal, played as rehearsal_campaigns() plays it.
/// Precondition: the plan has one. Throws Error{unavailable} without memory for it, and what a run
/// throws.
[[nodiscard]] std::vector<double> rehearse_again(const Plan& plan);

} // namespace reckon
