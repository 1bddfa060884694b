// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/units.hpp"
#include "launch/rendezvous.hpp"

#include <string>

namespace reckon {

/// Keeps every other job from writing into a folder, for as long as this object lives at any rank:
/// a lock of the system on the file `lock` in it (flock), which ends with its process, however that
/// ends. All ranks may share the folder, or each machine may have its own.
///
/// On a network file system the lock is as good as that system's: NFS has it between machines. On
/// one without locks, rank 0 warns that nothing keeps others out.
class FolderLock {
public:
  /// Called by all ranks together. Makes the folder if it is missing. A killed job may need a
  /// moment to end, so this waits two seconds for another's lock. Throws Error{input} at every
  /// rank, naming the holder, or Error{operation} when a rank cannot write into its folder.
  FolderLock(Rendezvous& rendezvous, const std::string& folder, Seconds limit);

private:
  Fd m_file;
};

} // namespace reckon
