// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "launch/rendezvous.hpp"
#include "run/checkpoint_files.hpp"

#include <cstdint>
#include <vector>

namespace reckon {

/// What a job goes on from.
struct Resumed {
  /// Of the checkpoint that is gone on from, last, and of the complete one before it, if there is
  /// one that can be told from its manifest.
  std::vector<std::uint64_t> steps;
  SealedFile part; ///< this rank's
};

/// Finds, together with all other ranks, the newest checkpoint in the folder that is complete and
/// of which every rank can read its own part; rank 0 warns of each that it passes over, with the
/// file and what is wrong with it. The folder may be one that all machines share, or each machine's
/// own. Throws Error{input} at every rank when there is none, or when a whole one is of another
/// plan or another number of ranks: that is a mistake, and no older one is looked for.
[[nodiscard]] Resumed load_checkpoint(Rendezvous& rendezvous, const CheckpointFolder& folder,
                                      const CheckpointJob& job, const RankProgram& saving,
                                      Seconds limit);

} // namespace reckon
