// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <string>
#include <vector>

namespace reckon {

/// The parameters and optimizer states that one rank keeps from one iteration to the next, by
/// array, then by place in the gradient. Only states of its own steps.
[[nodiscard]] std::vector<KeptRun> kept_runs(const RankProgram& program);

/// The same iteration, which also saves parameters and optimizer states as they were before it, by
/// copy on write (COARSE, section IV-A): each rank has one more buffer, and a copy into it precedes
/// each step that would overwrite saved data. A copy waits for nothing, so a lane makes it while it
/// would wait for the network; only the step waits for its copies.
///
/// Every byte is saved once in the whole job, by a rank that steps it; several ranks (every worker,
/// with the step at the workers) share the work evenly, over lanes as well. RankProgram::saved has
/// the places. Works on any schedule with Outcome::parameters; throws Error{internal} on another.
[[nodiscard]] Schedule with_snapshot(const Schedule& schedule);

/// Once before training goes on: brings the restored data of with_snapshot()'s ranks to all others
/// that hold the same bytes. The buffers are those of `saving`.
[[nodiscard]] Schedule restoring(const Schedule& saving);

/// Once before training goes on by another schedule of the same job: brings the data that
/// `saving`'s ranks would save to all ranks that keep it in `next`. Each rank's last buffer, one
/// more than in `next`, has its part (RankProgram::saved has the places, in the order of
/// `saving`'s); every byte comes from there.
[[nodiscard]] Schedule carrying(const Schedule& saving, const Schedule& next);

/// What is wrong with the places that are saved or restored; check() proves the rest.
/// - Outcome::parameters: when anything is saved, every byte of the parameters and of all states is
///   saved by exactly one rank, with one copy from where that rank keeps it, and nothing else
///   touches the copy;
/// - Outcome::restored: writes go from where a stretch is kept to where the same is kept.
[[nodiscard]] std::vector<std::string> snapshot_faults(const Schedule& schedule);

} // namespace reckon
