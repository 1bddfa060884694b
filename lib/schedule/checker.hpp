// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <string>
#include <vector>

namespace reckon {

/// The checker's findings. No faults: the schedule is proved.
struct CheckResult {
  std::vector<std::string> faults; ///< at most k_max_faults, each naming rank, lane and op
  std::size_t ops = 0;
  [[nodiscard]] bool ok() const { return faults.empty(); }
};
inline constexpr std::size_t k_max_faults = 10;

/// Proves of a schedule, without running it:
/// - every slice lies in its buffer, every peer and dependency exists, no rank writes to itself;
/// - tags: each write meets exactly one await of its receiver's same lane, and none is used twice;
/// - no deadlock: the graph over all ranks (dependencies, and a write before its await) has no
/// cycle;
/// - sums: every byte of every worker's gradient ends as the sum over all workers, each counted
/// exactly once; in another collective than all-reduce the roots' stretches do, or every worker
/// ends with what their roots had, and each byte has one root; or, with Outcome::parameters, every
/// parameter that a rank holds makes exactly one step, with the sum over all workers, and every
/// worker holds all of them; or, with Outcome::latest, every step of every worker is in the latest
/// parameters exactly once, and all of a worker's own are in what it has, no other's more than
/// once; whole numbers and fp32 are never added to each other;
/// - what is saved (snapshot.hpp): every byte of the parameters and of the optimizer's states by
/// one rank, with one copy made before the byte changes; with Outcome::restored every rank ends
/// with what was saved of all that it keeps;
/// - sums in place (in_place.hpp): a peer's memory changes only while the peer waits for it;
/// - no races: two accesses of one byte, one of them changing it, are always ordered.
/// Additions to the latest parameters, and copies of them, may come in any order
/// when they are one lane's, which does one op at a time. Memory is some 300 bytes for each op.
/// Throws Error{operation} when interrupted().
[[nodiscard]] CheckResult check(const Schedule& schedule);

} // namespace reckon
