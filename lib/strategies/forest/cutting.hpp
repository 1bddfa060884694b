// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/workload.hpp"
#include "strategies/parts.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace reckon {

/// Cuts the gradient into parts of at most `part_bytes`, each with its tree; servers and lanes are
/// not set. `fused`: each tree's share in equal parts of its own, so that no share is rounded to
/// parts; the trees' parts take turns, and a part that would cross the end of a run of one element
/// type becomes two. `tensors`: equal pieces of each tensor, each for the tree that is farthest
/// behind its share. At any time every tree has had its proportion. `part_bytes` must be at least
/// 64 (Error{usage}). `roots` above 1, only with `fused`: root k has the k-th of as many stretches,
/// from byte floor(k M / roots) of the joined runs on, ends rounded down to whole elements; the
/// shares of each root's trees add up to 1 / roots.
[[nodiscard]] Parts cut_for_trees(const GradientLayout& layout, const Workload& workload,
                                  const std::vector<SumTree>& trees, std::uint64_t part_bytes,
                                  Cutting cutting, std::size_t roots = 1);

/// Gives each part of the plan its tree's root as server, and a lane; the parts of one tree take
/// lanes in turn.
void give_lanes(Plan& plan, std::uint64_t lanes);

} // namespace reckon
