// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "launch/rendezvous.hpp"
#include "run/checkpoint_files.hpp"

#include <cstdint>
#include <vector>

namespace reckon {

/// The state that a job resumes from.
struct Resumed {
  /// The resumed checkpoint, last, and the complete one before it, if its manifest shows one.
  std::vector<std::uint64_t> steps;
  SealedFile part; ///< this rank's
};

/// Finds, together with all other ranks, the newest complete checkpoint in the folder of which
/// every rank can read its own part; rank 0 warns of each that it passes over, with the file and
/// its fault. All machines may share the folder, or each machine may have its own. Throws
/// Error{input} at every rank when there is no such checkpoint, or when a whole one is of another
/// plan or another number of ranks: that is a mistake, so no older one is tried.
[[nodiscard]] Resumed load_checkpoint(Rendezvous& rendezvous, const CheckpointFolder& folder,
                                      const CheckpointJob& job, const RankProgram& saving,
                                      Seconds limit);

} // namespace reckon
