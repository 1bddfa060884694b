// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/units.hpp"
#include "launch/rendezvous.hpp"

#include <string>

namespace reckon {

/// Keeps every other job from writing into a folder, for as long as this object lives at any rank:
/// a lock of the system on the file `lock` in it (flock), which goes with the process that holds
/// it, however that ends. The folder may be one that all ranks share, or each machine's own.
///
/// On a network file system the lock is as good as that system's: NFS has it between machines;
/// where there is none, rank 0 warns that nothing keeps others out.
class FolderLock {
public:
  /// Called by all ranks together. Makes the folder if it is not there. A job that was killed may
  /// need a moment to be gone, so another's lock is waited for, for two seconds. Throws
  /// Error{input} at every rank, naming who holds it, or Error{operation} when a rank cannot write
  /// into its folder.
  FolderLock(Rendezvous& rendezvous, const std::string& folder, Seconds limit);

private:
  Fd m_file;
};

} // namespace reckon
