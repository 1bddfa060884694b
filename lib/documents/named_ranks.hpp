// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace reckon {

// Lines of Profile::context that records of a job give, as "rank 5 (host): last in 49 of 60 ...",
// several with "; " between, or "none ...".

/// The rank that was last to arrive more often than by chance.
inline constexpr const char* k_late_rank = "late rank";
/// Ranks that made fewer calls than others.
inline constexpr const char* k_behind = "behind";
/// Ranks that do not answer.
inline constexpr const char* k_missing_ranks = "missing ranks";

} // namespace reckon
