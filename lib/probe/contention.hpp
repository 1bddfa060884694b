// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/contention.hpp"
#include "probe/campaign.hpp"
#include "probe/workbench.hpp"

namespace reckon {

/// Communication and computation in each other's way (ACE, section III): how long a communication
/// of 1, 10 and 100 MiB takes while something is computed, how long the computation takes while
/// communications run, and both alone.
///
/// - Communication: a copy from the node's memory to a node's (`from`, `to`), or the sum of what
///   arrived into what is there (`from`, `dtype` fp32, 2 `sources`), which is a CPU's work while
///   gradients travel. From cold memory; all data verified.
/// - Computation, `operation`: "gemm_N", the fp32 product of two N x N matrices (Eigen), which
///   needs cores; "embedding_N", N random rows of 128 fp32 gathered from a table larger than the
///   caches, which needs memory.
/// - `threads` communicate, next to node `from`: a quarter of its cores while the computation has
///   the others, or all of them, with the computation on the same cores.
///
/// The recipe is ACE's, compute, post communication, compute again, wait; only that the second
/// goes on until the first has been timed often enough, so that all of it is disturbed.
[[nodiscard]] Campaign contention_campaign(Workbench& bench);

} // namespace reckon
