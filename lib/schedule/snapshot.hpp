// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

#include <string>
#include <vector>

namespace reckon {

/// What one rank keeps of parameters and optimizer states from one iteration to the next, by array,
/// then by place in the gradient. Of states only what the rank steps.
[[nodiscard]] std::vector<KeptRun> kept_runs(const RankProgram& program);

/// The same iteration, which also saves parameters and optimizer states as they were before it, by
/// copy on write (COARSE, section IV-A): each rank has one buffer more, and a copy into it goes
/// before each step that would overwrite what is to be saved. A copy waits for nothing, so that a
/// lane makes it while it would wait for the network; only the step waits for its copies.
///
/// Every byte is saved once in the whole job, by a rank that steps it; among several (every worker
/// does, with the step at the workers) the work is shared out evenly, over lanes as well.
/// RankProgram::saved says what lies where. Works on any schedule with Outcome::parameters; throws
/// Error{internal} on another.
[[nodiscard]] Schedule with_snapshot(const Schedule& schedule);

/// Once before training goes on: brings what with_snapshot()'s ranks have saved, and have put back
/// where it belongs, to all others that hold the same bytes. The buffers are those of `saving`.
[[nodiscard]] Schedule restoring(const Schedule& saving);

/// Once before training goes on by another schedule of the same job: brings what `saving`'s ranks
/// would save to all ranks that keep it in `next`. Each rank's last buffer, one more than in
/// `next`, has its part (RankProgram::saved says what lies where, in the order of `saving`'s);
/// nothing is left out and nothing comes from elsewhere.
[[nodiscard]] Schedule carrying(const Schedule& saving, const Schedule& next);

/// What is wrong with the places that are saved or restored; check() proves the rest.
/// - Outcome::parameters: when anything is saved, every byte of the parameters and of all states is
///   saved by exactly one rank, with one copy from where that rank keeps it, and nothing else
///   touches the copy;
/// - Outcome::restored: writes go from where a stretch is kept to where the same is kept.
[[nodiscard]] std::vector<std::string> snapshot_faults(const Schedule& schedule);

} // namespace reckon
